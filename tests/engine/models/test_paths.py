"""Embeddings of paths of thought: every way to run a model adds the same to keys and values."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from engine.core.errors import BadInput
from engine.models.batch import pack
from engine.models.families import parse
from engine.models.loading.load import load, save
from engine.models.model import Model
from engine.models.reference import dense
from tests.engine.models.fused import LLAMA, SIZE, memory, random_weights
from tests.engine.models.small import config, weights

PATHS = replace(LLAMA, paths=3)
TOKENS = [5, 6, 7, 8, 9, 10, 11, 12]
OF = [0, 0, 1, 1, 3, 3, 2, 0]


def logits(model, paths):
    kv = memory(model.config)
    batch = pack([TOKENS], [0], [[3]], SIZE)
    batch.logits_at_R = np.arange(len(TOKENS), dtype=np.int32)
    batch.paths_T = None if paths is None else np.array(paths, np.int32)
    return model.forward(batch, kv)


def truth(config, held, paths):
    return dense(config, held, torch.tensor([TOKENS]), paths_BT=torch.tensor([paths]))[0]


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
def test_every_path_of_execution_adds_the_same(plain):
    held = random_weights(PATHS)
    model = Model(PATHS, held, plain=plain)
    assert (model.fused is None) == plain
    want = truth(PATHS, held, OF)
    assert torch.allclose(logits(model, OF), want, atol=1e-4)
    assert (want - truth(PATHS, held, [0] * len(OF))).abs().max() > 1e-2


@pytest.mark.parametrize("plain", [True, False], ids=["plain", "fused"])
def test_tokens_of_no_path_are_a_model_without_paths(plain):
    held = random_weights(PATHS)
    none = logits(Model(LLAMA, held, plain=plain), None)
    for paths in (None, [0] * len(OF)):
        assert torch.equal(logits(Model(PATHS, held, plain=plain), paths), none)


def test_transformers_reads_the_folder_as_a_model_without_paths(tmp_path):
    shape = config("llama-3", thinking_paths=3)
    held = weights(shape)
    save(tmp_path, shape, held)
    ours = load(tmp_path)
    assert ours.config.paths == 3
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    with torch.inference_mode():
        want = theirs(torch.tensor([TOKENS])).logits[0]
    assert torch.allclose(logits(ours, None), want, atol=1e-4)


def test_a_wrong_number_of_paths_is_named():
    with pytest.raises(BadInput, match="thinking_paths"):
        parse(config("llama-3").raw | {"thinking_paths": -1})
