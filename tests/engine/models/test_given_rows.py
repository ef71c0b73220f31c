"""Rows that enter a pass as vectors, in the place of a token's embedding."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from engine.core.errors import BadInput
from engine.inference.executors.tensors.nano_batches import halves
from engine.models.batch import Batch, pack
from engine.models.kv import PagedKV
from engine.models.model import Model
from tests.engine.models.small import config, weights

SIZE = 4


def batch() -> Batch:
    chance = np.random.default_rng(0)
    texts = [chance.integers(0, 60, length).tolist() for length in (5, 1, 7)]
    return pack(texts, [0, 0, 0], [[0, 1], [2], [3, 4]], SIZE)


def given(batch: Batch, table_VC: np.ndarray, at: list[int]) -> Batch:
    """The same batch with the embeddings of some of its tokens as vectors, in no order."""
    tokens_T, vectors_NC = batch.tokens_T.copy(), table_VC[batch.tokens_T[at[::-1]]]
    tokens_T[at[::-1]] = -1 - np.arange(len(at))
    return replace(batch, tokens_T=tokens_T, vectors_NC=vectors_NC)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", ["qwen3", "gemma-2"])
def test_a_tokens_own_embedding_as_a_vector_changes_no_logit(name, dtype, plain):
    shape = config(name)
    held = weights(shape)
    model, looked_up = Model(shape, held, dtype, plain=plain), batch()
    table_VC = held["model.embed_tokens.weight"].to(model.dtype).float()
    if shape.embedding_scale != 1.0:  # a vector enters as it is
        scale = torch.tensor(shape.embedding_scale, dtype=model.dtype)
        table_VC = (table_VC.to(model.dtype) * scale).float()
    table_VC = table_VC.numpy()
    logits = []
    for each in (
        looked_up,
        given(looked_up, table_VC, [1, 4, 5, 11]),
        given(looked_up, table_VC, [*range(13)]),
    ):
        logits.append(model.forward(each, PagedKV(model.spec, 5, SIZE, "cpu")))
    assert torch.equal(logits[0], logits[1]) and torch.equal(logits[0], logits[2])


def test_a_model_that_tells_its_layers_of_tokens_refuses_vectors():
    shape = config("gemma-4")
    model, looked_up = Model(shape, weights(shape)), batch()
    vectors = given(looked_up, np.zeros((64, shape.hidden), np.float32), [2])
    with pytest.raises(BadInput, match="a pass over given vectors does not know it"):
        model.embed(vectors)


def test_a_batch_whose_rows_may_see_one_another_stays_whole():
    looked_up = batch()
    assert len(halves(looked_up)) == 2
    assert len(halves(given(looked_up, np.zeros((64, 8), np.float32), [0]))) == 1
