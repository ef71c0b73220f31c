"""Shapes that paged attention is held to and timed at: pages shuffled, unused slots not numbers."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from engine.kernels.operator import Arguments, Case


def made(
    heads: int, kv_heads: int, dim: int, news: Sequence[int], contexts: Sequence[int],
    seed: int, dtype: torch.dtype, *, size: int = 16, values: int = 0, shuffled: bool = True,
    distinct: int = 0, **choices: Any,
) -> Arguments:  # fmt: skip
    """Queries for `news` new tokens a sequence, and pages of `size` tokens that hold `contexts`.

    In order where not `shuffled`: as a prompt leaves them that found the pool empty. `distinct`:
    pages drawn, which the others repeat: drawing half a gigabyte takes longer than reading it.
    """
    draw = torch.Generator().manual_seed(seed)
    values = values or dim
    pages = [-(-context // size) for context in contexts]
    count = sum(pages) + 2
    order = torch.randperm(count, generator=draw) if shuffled else torch.arange(count)
    table = torch.full((len(contexts), max(pages)), -1, dtype=torch.int32)
    drawn = min(distinct or count, count)
    k, v = (torch.randn(drawn, size, kv_heads, d, generator=draw) for d in (dim, values))
    if drawn < count:
        k, v = (x.repeat(-(-count // drawn), 1, 1, 1)[:count] for x in (k, v))
    given = 0
    for row, (context, held) in enumerate(zip(contexts, pages, strict=True)):
        table[row, :held] = order[given : given + held].int()
        given += held
        if context % size:
            last = int(table[row, held - 1])
            k[last, context % size :] = v[last, context % size :] = float("nan")
    start = torch.tensor([0, *news]).cumsum(0).int()
    return {
        "q_THD": torch.randn(int(start[-1]), heads, dim, generator=draw).to(dtype),
        "k_PSGD": k.to(dtype),
        "v_PSGE": v.to(dtype),
        "block_table_BP": table,
        "query_start_B1": start,
        "context_B": torch.tensor(contexts, dtype=torch.int32),
        "scale": dim**-0.5,
        **choices,
    }


def case(name: str, *shape: Any, **choices: Any) -> Case:
    """A case of `made` with all but seed and dtype given."""
    return Case(name, partial(made, *shape, **choices))


CASES = (
    case("decode", 8, 2, 64, [1, 1, 1], [300, 17, 1]),
    case("decode-one-head", 1, 1, 16, [1], [700]),
    case("decode-odd", 6, 2, 20, [1, 0, 1], [530, 9, 258], size=7, values=24),
    case("decode-window", 5, 5, 80, [1, 1], [600, 40], window=300, softcap=5.0),
    case("decode-many-on-one", 11, 1, 48, [1, 1], [400, 3], size=7),
    case("chunks", 12, 4, 64, [5, 0, 1, 40], [300, 17, 60, 40]),
)
SIZES = (
    case("decode-8x16k", 8, 8, 64, [1] * 8, [16384] * 8, shuffled=False, distinct=512),
    case("decode-ragged-64k", 8, 1, 64, [1] * 8, [65536] + [1024] * 7),
)
