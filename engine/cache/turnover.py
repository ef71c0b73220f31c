"""Requests that enter and leave a running batch over a plain cache: pages, prefix tree and columns
in one call each."""

import numpy as np

from engine.cache.cache import Cache
from engine.kernels import paged_turnover
from engine.kernels.compiled import settled


class Turnover:
    """The rows of one batch, whose pages are those of `cache`, while it is plain."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._enter, self._leave = settled(paged_turnover.enter), settled(paged_turnover.leave)

    def enter(
        self, rows: np.ndarray, row: int,
        tokens_N: np.ndarray, joined_H: np.ndarray, fresh: int, numbers_K: tuple[int, ...],
        flags_K: tuple[bool, ...], seed: int,
    ) -> None:  # fmt: skip
        """Fill `row` of `rows` (a table of their columns) with a request's tokens (int32), the
        pages `joined_H` that it holds already, `fresh` ones and the columns. Raises IndexError
        where pages are too few."""
        cache, pool = self.cache, self.cache.pool
        pool.free, left = self._enter(
            cache.idle.table, rows, row, tokens_N, joined_H, fresh, numbers_K, flags_K, seed,
            pool.free,
        )  # fmt: skip
        cache.cached -= left

    def leave(
        self, rows: np.ndarray, pages: int, row: int, last: int, root: int, shares: bool,
        tokens: bool,
    ) -> bool:  # fmt: skip
        """The request of `row`, which has so many `pages`, leaves them and its place to the `last`
        row; `shares`: full ones join the tree, under `root`. False where the tree has one of those
        already: the row has to join it before."""
        cache, pool, idle = self.cache, self.cache.pool, self.cache.idle
        idle.make_room(pages)
        kept, pool.free = self._leave(
            idle.table, rows, idle.age_P, row, last, root, shares, cache.step, pool.free, tokens,
        )  # fmt: skip
        cache.cached += max(kept, 0)
        return kept >= 0
