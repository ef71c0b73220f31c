"""Shapes that local linear attention is held to and timed at, ridges and bandwidths among them."""

from functools import partial

import torch

from engine.kernels.operator import Arguments, Case


def made(
    batch: int, heads: int, time: int, key: int, value: int, scale: float, ridge: float,
    seed: int, dtype: torch.dtype,
) -> Arguments:  # fmt: skip
    """Random queries, keys and values."""
    draw = torch.Generator().manual_seed(seed)
    q, k = (torch.randn(batch, heads, time, key, generator=draw) for _ in "qk")
    v = torch.randn(batch, heads, time, value, generator=draw)
    return {
        "q_BHTD": q.to(dtype), "k_BHTD": k.to(dtype), "v_BHTE": v.to(dtype),
        "scale": scale, "ridge": ridge,
    }  # fmt: skip


def case(
    batch: int, heads: int, time: int, key: int, value: int, scale: float, ridge: float
) -> Case:
    """A case by its shape, kernel and ridge."""
    return Case(
        f"{batch}x{heads}x{time}x{key}x{value}-ridge-{ridge:g}",
        partial(made, batch, heads, time, key, value, scale, ridge),
    )


CASES = (
    case(1, 1, 1, 16, 16, 0.25, 0.1),
    case(1, 2, 40, 16, 32, 0.25, 1.0),
    case(2, 1, 70, 5, 7, 0.4, 0.1),
    case(1, 1, 33, 32, 16, 0.18, 10.0),
)
SIZES = (case(1, 4, 1024, 64, 64, 0.125, 1.0),)
