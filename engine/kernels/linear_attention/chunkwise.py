"""Chunkwise gated linear attention on a GPU (Triton): states in order, then every chunk at once."""

from functools import partial
from typing import Any

import torch
import triton
from torch import Tensor
from torch.nn.functional import pad

from engine.kernels.linear_attention.backward import Form, attend
from engine.kernels.operator import Arguments, Variant
from engine.kernels.triton_source import kernels

CHUNK, SUB_CHUNK, BLOCK = 64, 16, 64
NARROWEST, WIDEST = 16, 128  # what a matrix product of one program takes, and what fits its memory


def _padded(width: int) -> int:
    return max(triton.next_power_of_2(width), NARROWEST)


def _heads(x: Tensor) -> Tensor:
    """(batch · heads, time, width), the width padded with zeros."""
    width = _padded(x.shape[-1])
    x = pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x
    return x.contiguous().flatten(0, 1)


def _sums(module: Any, gate: Tensor, length: int) -> tuple[Tensor, Tensor]:
    """Gates summed in stretches of `length` tokens: up to each token, and after it."""
    heads, time, width = gate.shape
    before, after = torch.empty_like(gate), torch.empty_like(gate)
    grid = (triton.cdiv(time, length), heads)
    module.cumulate[grid](gate, before, after, time, WIDTH=width, LENGTH=length)
    return before, after


def _run(
    gated_keys: bool, a: Tensor, b: Tensor, c: Tensor, gate: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """One of the two products; states are (rows of b) × (columns of c)."""
    lead, time = a.shape[:2], a.shape[2]
    rows, columns = state.shape[2:]
    module = kernels("engine.kernels.linear_attention.chunkwise_triton", not a.is_cuda)
    key, value = _padded(rows), _padded(columns)
    block = min(BLOCK, value)
    last = pad(state, (0, value - columns, 0, key - rows)).contiguous().clone().flatten(0, 1)
    a, b, c, gate = (_heads(x) for x in (a, b, c, gate))
    heads, count = a.shape[0], triton.cdiv(time, CHUNK)
    out = torch.empty(heads, time, value, device=a.device)
    if heads and time:
        near, far = (_sums(module, gate, length) for length in (SUB_CHUNK, CHUNK))
        kept = torch.empty(heads, count, key, value, device=a.device)
        sizes = {"KEY": key, "VALUE": value, "CHUNK": CHUNK, "BLOCK": block}
        module.states[(value // block, heads)](
            b, c, *far, last, kept, time, GATED_KEYS=gated_keys, **sizes
        )
        grid = (value // block, triton.cdiv(time, SUB_CHUNK), heads)
        product = module.keys_gated if gated_keys else module.values_gated
        product[grid](a, b, c, gate, *near, kept, out, time, SUB=SUB_CHUNK, **sizes)
    return (
        out.view(*lead, time, value)[..., :columns],
        last.view(*lead, key, value)[..., :rows, :columns],
    )


FORM = Form(partial(_run, True), partial(_run, False))


def gated_linear_attention(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """As the reference, in float32."""
    return attend(FORM, q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK, state_BHKV, scale)


def _refuses(given: Arguments) -> str:
    widest = max(*given["state_BHKV"].shape[2:])
    return f"takes heads of at most {WIDEST} numbers, not {widest}" if widest > WIDEST else ""


VARIANT = Variant(
    name="chunkwise",
    about="states from chunk to chunk, then a program for each sub-chunk",
    device="cuda",
    call=gated_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=3,
    gradients=True,
    interpreted=True,
    refuses=_refuses,
)
