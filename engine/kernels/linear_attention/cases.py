"""Shapes that gated linear attention is held to and timed at, mild gates and extreme ones."""

from functools import partial

import torch
from torch.nn.functional import logsigmoid

from engine.kernels.operator import Arguments, Case


def made(
    batch: int,
    heads: int,
    time: int,
    key: int,
    value: int,
    gate: float,
    spread: float,
    seed: int,
    dtype: torch.dtype,
) -> Arguments:
    """Random arguments; gates are sigmoids around `gate` (large forgets little), `spread` apart."""
    draw = torch.Generator().manual_seed(seed)
    q, k, g = (torch.randn(batch, heads, time, key, generator=draw) for _ in range(3))
    v = torch.randn(batch, heads, time, value, generator=draw)
    state = torch.randn(batch, heads, key, value, generator=draw)
    return {
        "q_BHTK": q.to(dtype),
        "k_BHTK": k.to(dtype),
        "v_BHTV": v.to(dtype),
        "log_gate_BHTK": logsigmoid(g * spread + gate).to(dtype),
        "state_BHKV": state.to(dtype),
        "scale": key**-0.5,
    }


def case(
    batch: int,
    heads: int,
    time: int,
    key: int,
    value: int,
    gate: float = 3.0,
    spread: float = 1.0,
    name: str = "",
) -> Case:
    """A case by its shape; `name` says what is special about it."""
    label = f"{batch}x{heads}x{time}x{key}x{value}"
    return Case(
        f"{label}-{name}" if name else label,
        partial(made, batch, heads, time, key, value, gate, spread),
    )


CASES = (
    case(1, 1, 1, 16, 16, name="one-token"),
    case(1, 2, 70, 16, 32),
    case(2, 1, 33, 5, 7, name="odd-widths"),
    case(1, 1, 80, 32, 16, spread=60.0, name="keeps-or-forgets-at-once"),
    case(1, 1, 40, 16, 16, gate=-60.0, name="forgets-at-once"),
    case(1, 1, 130, 16, 16, gate=12.0, name="hardly-forgets"),
)
SIZES = (case(1, 8, 2048, 64, 64), case(1, 8, 8192, 64, 64))
