"""How attention is split into work items, and what each of them costs.

FlashAttention-2's split (arXiv 2307.08691): an item is a block of rows of one head,
where FlashAttention's was a whole head.
"""

from collections.abc import Iterable, Sequence

import numpy as np


def pairs(first: int, rows: int, queries: int, keys: int, causal: bool, window: int = 0) -> int:
    """Query-key pairs that queries first … first + rows of a sequence see."""
    position = np.arange(first, first + rows) + keys - queries
    last = np.minimum(position, keys - 1) if causal else np.full(rows, keys - 1)
    begin = np.maximum(position - window + 1, 0) if window else np.zeros(rows, np.int64)
    return int(np.maximum(last - begin + 1, 0).sum())


def key_pairs(first: int, rows: int, queries: int, keys: int, causal: bool) -> int:
    """Query-key pairs that keys first … first + rows of a sequence are seen in."""
    if not causal:
        return rows * queries
    hidden = np.clip(np.arange(first, first + rows) - (keys - queries), 0, queries)
    return int((queries - hidden).sum())


def all_pairs(queries: Sequence[int], keys: Sequence[int], causal: bool, window: int = 0) -> int:
    """Query-key pairs of one head, over all sequences."""
    return sum(pairs(0, n, n, m, causal, window) for n, m in zip(queries, keys, strict=True))


def blocks(lengths: Sequence[int], heads: int, block: int, last_first: bool = False) -> np.ndarray:
    """Tasks [sequence, head, first row], int64: every block of `block` rows of every head.

    `last_first` puts later blocks before earlier ones: under a causal mask they see the most, and
    the longest tasks should not be begun last.
    """
    found = [
        (b, h, first)
        for b, length in enumerate(lengths)
        for first in range(0, length, block)
        for h in range(heads)
    ]
    found.sort(key=lambda task: -task[2] if last_first else 0)
    return np.array(found, np.int64).reshape(-1, 3)


def evenness(shares: Iterable[float], workers: int) -> float:
    """All work over workers times the most that one of them got: 1 where all are busy to the end,
    1 / workers where one does everything."""
    got = list(shares)
    return sum(got) / (workers * max(got)) if got else 1.0
