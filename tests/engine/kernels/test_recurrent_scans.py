"""The gated delta rule and Mamba-2 in chunks, against the same token by token."""

import pytest
import torch

from engine.kernels.recurrent.delta_rule import recur, recur_in_chunks
from engine.kernels.recurrent.mamba2 import scan, scan_in_chunks
from engine.kernels.recurrent.state import CHUNK

HEADS, KEY, VALUE = 3, 5, 7
LENGTHS = (1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 37)
RULES = {"delta": (recur, recur_in_chunks), "mamba": (scan, scan_in_chunks)}


def given(rule: str, length: int, decay: float, dtype: torch.dtype = torch.float64):
    """Inputs of two sequences that begin with a state; keys of length one, as layers make them."""
    draw = torch.Generator().manual_seed(length)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw, dtype=dtype)

    q, k = (torch.nn.functional.normalize(normal(2, length, HEADS, KEY), dim=-1) for _ in "qk")
    v, log = normal(2, length, HEADS, VALUE), -decay * normal(2, length, HEADS).abs()
    beta = [normal(2, length, HEADS).sigmoid()] if rule == "delta" else []
    return [q, k, v, log, *beta, normal(2, HEADS, KEY, VALUE)]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("decay", [0.0, 0.1, 50.0], ids=["none", "slow", "at_once"])
def test_chunks_give_what_tokens_one_by_one_give(rule: str, decay: float) -> None:
    step, chunked = RULES[rule]
    for length in LENGTHS:
        for dtype, near in ((torch.float64, 1e-11), (torch.float32, 2e-5)):
            inputs = given(rule, length, decay, dtype)
            for ours, right in zip(chunked(*inputs), step(*inputs), strict=True):
                assert ours.isfinite().all() and (ours - right).abs().max() < near, length


@pytest.mark.parametrize("rule", RULES)
def test_a_prompt_cut_anywhere_ends_in_the_same_state(rule: str) -> None:
    *tokens, state = given(rule, 2 * CHUNK + 37, 0.1)
    whole, after = RULES[rule][0](*tokens, state)
    for cut in (1, 3, CHUNK, CHUNK + 29):
        first, middle = RULES[rule][1](*(x[:, :cut] for x in tokens), state)
        rest, last = RULES[rule][1](*(x[:, cut:] for x in tokens), middle)
        assert (torch.cat([first, rest], 1) - whole).abs().max() < 1e-11
        assert (last - after).abs().max() < 1e-11


@pytest.mark.parametrize("rule", RULES)
def test_gradients_through_chunks_are_those_through_tokens(rule: str) -> None:
    found = []
    for each in RULES[rule]:
        inputs = [x.requires_grad_() for x in given(rule, CHUNK + 5, 0.3)]
        outs = each(*inputs)
        loss = sum((x * torch.linspace(-1, 1, x.numel()).view_as(x)).sum() for x in outs)
        found.append(torch.autograd.grad(loss, inputs))
    for ours, right in zip(*found, strict=True):
        assert (ours - right).abs().max() < 1e-10
