"""Decoding steps of paged rows taken at once: pages, prefix tree and tokens as single steps leave
them."""

import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import FAR
from engine.kernels import paged_rows
from engine.kernels.paged_rows import Batch, Pool


def decode(
    cache: Cache, batch: Batch, count: int, number: int, steps: int, shares: bool, looked: bool,
    vocab: np.uint64,
) -> tuple[int, bool]:  # fmt: skip
    """Steps `number` … `number` + `steps` - 1 of the first `count` rows of `batch`, whose pages are
    those of a quiet `cache`; `shares`: full pages join the tree.

    Returns how many were done, and whether rows are to be looked at one by one before the next
    (`looked`: that has been done before the first). Raises IndexError where pages are too few.
    """
    pool, idle, ages = cache.pool, cache.idle, cache.ages
    known = Pool(
        pool.references, pool.stack, idle.worth_P, ages.born, ages.uses, ages.next_use,
        *idle.places,
    )  # fmt: skip
    done, pool.free, gone, look = paged_rows.decode(
        cache.tree.nodes, idle.heap, known, batch, count, number, steps, shares, looked, pool.free,
        FAR, vocab,
    )  # fmt: skip
    cache.cached -= gone
    return done, look
