"""Tensors that a config leaves out are passed over, unless the model would be another with them."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.core.errors import BadInput
from engine.models.loading.load import opened, save
from tests.engine.models import small

BESIDE = {
    "a further layer": ("model.layers.9.input_layernorm.weight", 1.0),
    "a bias": ("model.layers.0.self_attn.q_proj.bias", 1.0),
    "a head of its own": ("lm_head.weight", 1.0),
}
NOTHING = {
    "a bias of nothing": ("model.layers.0.self_attn.q_proj.bias", 0.0),
    "frequencies": ("model.layers.0.self_attn.rotary_emb.inv_freq", 1.0),
    "a tower": ("vision.layers.99.proj.weight", 1.0),
}


def folder(path: Path, name: str, value: float, **more: object) -> Path:
    """A small Llama with one tensor more."""
    config = small.config("llama-3", tie_word_embeddings=True)
    save(path, config, small.weights(config))
    held = load_file(path / "model.safetensors")
    like = held["model.embed_tokens.weight"] if "head" in name else torch.ones(3)
    save_file(held | {name: torch.full_like(like, value)}, path / "model.safetensors")
    told = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(told | more))
    return path


@pytest.mark.parametrize("what", BESIDE)
def test_a_tensor_that_would_change_the_model_is_not_left_out_in_silence(tmp_path, what) -> None:
    name, value = BESIDE[what]
    with pytest.raises(BadInput, match="config.json") as told:
        opened(folder(tmp_path / "m", name, value))
    assert repr(name) in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize("what", NOTHING)
def test_what_changes_nothing_is_left_out(tmp_path, what) -> None:
    opened(folder(tmp_path / "m", *NOTHING[what]))


def test_layers_that_predict_further_tokens_are_left_out(tmp_path) -> None:
    name, value = BESIDE["a further layer"]
    opened(folder(tmp_path / "m", name, value, num_nextn_predict_layers=1))


def test_a_head_that_is_the_embedding_is_left_out(tmp_path) -> None:
    path = folder(tmp_path / "m", "x", 1.0)
    held = load_file(path / "model.safetensors")
    held["lm_head.weight"] = held["model.embed_tokens.weight"].clone()
    save_file(held, path / "model.safetensors")
    opened(path)
