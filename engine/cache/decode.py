"""Decoding steps of paged rows taken at once: pages, prefix tree and tokens as single steps leave
them."""

import numpy as np

from engine.cache.cache import Cache
from engine.kernels import paged_rows
from engine.kernels.compiled import settled


class DecodedRows:
    """The rows of one batch, whose pages are those of a quiet `cache`."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self._decode, self._index = settled(paged_rows.decode), settled(paged_rows.index)

    def decode(
        self, rows: np.ndarray, count: int, number: int, steps: int, shares: bool, looked: bool,
        vocab: np.uint64,
    ) -> tuple[int, bool]:  # fmt: skip
        """Steps `number` … `number` + `steps` - 1 of the first `count` of `rows` (a table of their
        columns); `shares`: full pages join the tree.

        Returns how many were done, and whether rows are to be looked at one by one before the next
        (`looked`: that has been done before the first). Raises IndexError where pages are too few.
        """
        cache, pool = self.cache, self.cache.pool
        done, pool.free, gone, look = self._decode(
            cache.idle.table, rows, count, number, steps, shares, looked, pool.free, vocab
        )  # fmt: skip
        cache.cached -= gone
        return done, look

    def index(self, rows: np.ndarray, count: int) -> bool:
        """The next full page of each of the first `count` of `rows` joins the tree; whether rows
        are to be looked at one by one after it."""
        cache = self.cache
        return bool(self._index(cache.idle.table, rows, count, cache.step))
