"""Mixtures of experts in GGUF files: each layer's experts are parts of one tensor."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.core.errors import BadInput
from engine.models.batch import pack
from engine.models.gguf import blocks
from engine.models.gguf.header import read_header
from engine.models.kv import PagedKV
from engine.models.loading.find import find
from engine.models.loading.load import opened
from engine.models.reference import dense
from tests.engine.models.gguf.model_file import model

SAID: dict[str, dict[str, Any]] = {
    "llama": {"llama.expert_count": 3, "llama.expert_used_count": 2},
    "qwen3moe": {
        "qwen3moe.expert_count": 3,
        "qwen3moe.expert_used_count": 2,
        "qwen3moe.expert_feed_forward_length": 256,
        "qwen3moe.attention.key_length": 64,
    },
}


@pytest.mark.parametrize("kind", list(SAID))
def test_a_mixture_runs_as_the_reference_on_its_numbers(tmp_path: Path, kind: str) -> None:
    path = model(tmp_path / "small.gguf", kind, experts=3, **SAID[kind])
    config, source = opened(path)
    assert config.experts is not None and config.experts.count == 3
    assert config.family == {"llama": "mixtral", "qwen3moe": "qwen3_moe"}[kind]
    tokens = [3, 5, 1, 2, 4]
    made = find(str(path)).open()
    logits = made.forward(pack([tokens], [0], [[0]], 16), PagedKV(made.spec, 1, 16))
    truth = dense(config, {name: source[name].float() for name in source}, torch.tensor([tokens]))
    torch.testing.assert_close(logits[0], truth[0, -1], rtol=1e-4, atol=1e-4)


def test_an_expert_is_its_part_of_the_tensor_of_all(tmp_path: Path) -> None:
    path = model(tmp_path / "small.gguf", experts=3, **SAID["llama"])
    _, source = opened(path)
    whole = read_header(path).tensors["blk.1.ffn_down_exps.weight"]
    every = blocks.READERS["Q6_K"](whole.data().reshape(3 * 256, 1, -1)).dequantised()
    for expert in range(3):
        name = f"model.layers.1.block_sparse_moe.experts.{expert}.w2.weight"
        assert torch.equal(source[name], every.reshape(3, 256, 256)[expert])
        codes = source.codes(name)
        assert codes is not None and torch.equal(codes.dequantised(), source[name])


@pytest.mark.parametrize(
    ("kind", "experts", "more", "words"),
    [
        ("llama", 3, {"llama.expert_count": 4}, "its metadata asks for [4, 256]"),
        ("llama", 3, {"llama.expert_used_count": "two"}, "num_experts_per_tok"),
        ("qwen2", 3, {"qwen2.expert_count": 3}, "are read of those of llama, qwen3moe"),
    ],
)
def test_a_mixture_that_does_not_fit_is_one_line(
    tmp_path: Path, kind: str, experts: int, more: dict[str, Any], words: str
) -> None:
    path = model(tmp_path / "m.gguf", kind, experts, **(SAID.get(kind, {}) | more))
    with pytest.raises(BadInput) as caught:
        opened(path)
    assert words in str(caught.value) and "\n" not in str(caught.value)
