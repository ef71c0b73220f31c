"""Shapes that attention is held to and timed at."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import torch

from engine.kernels.operator import Arguments, Case


def made(
    queries: Sequence[int], keys: Sequence[int], heads: int, kv_heads: int, dim: int,
    value_dim: int, switches: dict[str, Any], seed: int, dtype: torch.dtype,
) -> Arguments:  # fmt: skip
    """Random queries, keys and values of sequences of these lengths."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=draw).to(dtype)

    return {
        "q_THD": normal(sum(queries), heads, dim),
        "k_SGD": normal(sum(keys), kv_heads, dim),
        "v_SGE": normal(sum(keys), kv_heads, value_dim),
        "query_start_B1": torch.tensor([0, *accumulate(queries)]),
        "key_start_B1": torch.tensor([0, *accumulate(keys)]),
        "scale": dim**-0.5,
        **switches,
    }


def case(
    name: str, queries: Sequence[int], heads: int, kv_heads: int, dim: int, *,
    keys: Sequence[int] = (), value_dim: int = 0, **switches: Any,
) -> Case:  # fmt: skip
    """A case by its shape; as many keys as queries unless said."""
    make = partial(made, queries, keys or queries, heads, kv_heads, dim, value_dim or dim, switches)
    return Case(name, make)


CASES = (
    case("one token", (1,), 1, 1, 8),
    case("causal", (150,), 2, 2, 64),
    case("dense", (130,), 1, 1, 32, causal=False),
    case("ragged, grouped", (3, 70, 1), 4, 2, 16, keys=(5, 133, 1)),
    case("odd sizes", (67,), 1, 1, 40, value_dim=24, causal=False),
    case("windowed, capped", (140,), 1, 1, 16, window=40, softcap=2.0),
)
SIZES = (
    case("8x512x64", (512,), 8, 8, 64),
    case("8x2048x64", (2048,), 8, 8, 64),
    case("8x2048x128", (2048,), 8, 8, 128),
    case("8x2048x128 dense", (2048,), 8, 8, 128, causal=False),
)
