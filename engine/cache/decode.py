"""Decoding steps of paged rows taken at once: pages, prefix tree and tokens as single steps leave
them."""

import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import FAR
from engine.kernels import paged_rows
from engine.kernels.paged_rows import Batch


def decode(
    cache: Cache, batch: Batch, count: int, number: int, steps: int, shares: bool, looked: bool,
    vocab: np.uint64,
) -> tuple[int, bool]:  # fmt: skip
    """Steps `number` … `number` + `steps` - 1 of the first `count` rows of `batch`, whose pages are
    those of a quiet `cache`; `shares`: full pages join the tree.

    Returns how many were done, and whether rows are to be looked at one by one before the next
    (`looked`: that has been done before the first). Raises IndexError where pages are too few.
    """
    pool, idle = cache.pool, cache.idle
    done, pool.free, gone, look = paged_rows.decode(
        cache.tree.nodes, idle.heap, idle.columns, batch, count, number, steps, shares, looked,
        pool.free, FAR, vocab,
    )  # fmt: skip
    cache.cached -= gone
    return done, look


def index_rows(cache: Cache, batch: Batch, count: int) -> bool:
    """The next full page of each of the first `count` rows of `batch` joins the tree of a quiet
    `cache`, unless that has its contents; whether rows are to be looked at one by one after it."""
    return bool(paged_rows.index(cache.tree.nodes, cache.idle.columns, batch, count, cache.step))
