"""Gated linear attention: its forms agree, states chain, and no gate is too strong."""

import pytest
import torch

from engine.core.errors import BadInput
from engine.kernels.linear_attention import OPERATOR
from engine.kernels.linear_attention.cases import made
from engine.kernels.linear_attention.chunkwise_cpu import gated_linear_attention as chunkwise
from engine.kernels.linear_attention.reference import gated_linear_attention as reference

CPU = [name for name, variant in OPERATOR.variants().items() if variant.device == "cpu"]


def arguments(time: int = 100, gate: float = 3.0, seed: int = 0, value: int = 32):
    return made(1, 2, time, 32, value, gate, 1.0, seed, torch.float32)


def wide(given):
    return {k: v.double() if torch.is_tensor(v) else v for k, v in given.items()}


def error(found, truth) -> float:
    return float(
        (found.detach().double() - truth.detach()).abs().max() / truth.detach().abs().max()
    )


@pytest.mark.parametrize("chunk,sub", [(16, 16), (32, 16), (64, 32), (128, 16), (96, 48)])
def test_any_chunk_and_sub_chunk_give_the_reference(chunk, sub):
    given = arguments()
    truth, state = reference(**wide(given))
    found, last = chunkwise(**given, chunk=chunk, sub_chunk=sub)
    assert error(found, truth) < 1e-5
    assert error(last, state) < 1e-5


@pytest.mark.parametrize("name", CPU)
def test_zero_gates_are_plain_linear_attention(name):
    given = {**arguments(), "log_gate_BHTK": torch.zeros(1, 2, 100, 32)}
    q, k, v, s = (given[n].double() for n in ("q_BHTK", "k_BHTK", "v_BHTV", "state_BHKV"))
    truth = ((q @ k.mT).tril() @ v + q @ s) * given["scale"]
    assert error(OPERATOR(variant=name, **given)[0], truth) < 1e-5


@pytest.mark.parametrize("name", CPU)
@pytest.mark.parametrize("strength", [-1.0, -30.0, -88.0, -1e4, -float("inf")])
def test_no_gate_overflows_however_strong(name, strength):
    given = arguments()
    given["log_gate_BHTK"] = torch.where(given["q_BHTK"] < 0.0, 0.0, strength)
    leaves = {k: v.requires_grad_() for k, v in given.items() if torch.is_tensor(v)}
    truth, state = reference(**wide(given))
    found, last = OPERATOR(variant=name, **given)
    assert error(found, truth) < 1e-5
    assert error(last, state) < 1e-5
    grads = torch.autograd.grad(found.sum() + last.sum(), list(leaves.values()))
    assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.parametrize("name", CPU)
def test_states_chain_at_any_cut(name):
    given = arguments()
    whole, last = OPERATOR(variant=name, **given)
    parts, state = [], given["state_BHKV"]
    for start, stop in ((0, 1), (1, 41), (41, 100)):
        cut = {
            k: v[:, :, start:stop] if torch.is_tensor(v) and v.shape[2] == 100 else v
            for k, v in given.items()
        }
        part, state = OPERATOR(variant=name, **{**cut, "state_BHKV": state})
        parts.append(part)
    assert error(torch.cat(parts, 2), whole.double()) < 1e-5
    assert error(state, last.double()) < 1e-5


def test_a_later_token_changes_nothing_before_it():
    given = arguments()
    before = chunkwise(**given)[0]
    given["v_BHTV"][:, :, 70:] += 5.0
    after = chunkwise(**given)[0]
    assert torch.equal(before[:, :, :70], after[:, :, :70])
    assert not torch.equal(before[:, :, 70:], after[:, :, 70:])


def test_no_tokens_pass_the_state_on():
    given = arguments(time=0)
    found, last = chunkwise(**given)
    assert found.shape == (1, 2, 0, 32)
    assert torch.equal(last, given["state_BHKV"])


def test_chunks_that_do_not_fit_are_refused_in_one_line():
    with pytest.raises(BadInput, match="multiple of the sub-chunk"):
        chunkwise(**arguments(), chunk=40, sub_chunk=16)
