"""Prefix tree (radix tree): full pages by what they hold and what came before them.

A node is a page; its key is its parent page and its own tokens, which are compared themselves, so
no collision of hashes can hand out foreign keys and values. Each salt has a root of its own.
"""

import numpy as np

from engine.core.memory import demand_zeros
from engine.kernels import page_tree
from engine.kernels.columns import addresses
from engine.kernels.compiled import settled
from engine.kernels.page_tree import OUT, Nodes


class PrefixTree:
    """Page-granular radix tree. Page numbers are nodes; roots are negative."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.nodes = Nodes(
            np.full(1 << (pages + pages // 4).bit_length(), -1, np.int32),
            np.full(pages, OUT, np.int32),
            demand_zeros(pages, np.int32),
            np.full(pages, -1, np.int32),
            demand_zeros(pages, np.uint64),
            demand_zeros((pages, page_size), np.int32),
        )
        self._follow, self._table = settled(page_tree.follow), addresses(self.nodes)
        self._roots: dict[str, int] = {}
        self._found = np.zeros(64, np.int32)

    def root(self, salt: str = "") -> int:
        """The parent of first pages under `salt`."""
        return self._roots.setdefault(salt, -1 - len(self._roots))

    def parent(self, page: int) -> int:
        """What a page of the tree hangs under."""
        return int(self.nodes.parent_P[page])

    def children(self, page: int) -> int:
        """How many pages hang under `page`."""
        return int(self.nodes.fanout_P[page])

    def follow(self, tokens: np.ndarray, parent: int, limit: int) -> list[int]:
        """The longest chain of pages under `parent` that holds a prefix of `tokens` (int32), at
        most `limit` pages."""
        if limit > len(self._found):
            self._found = np.zeros(2 * limit, np.int32)
        found = self._found[: max(0, limit)]
        return found[: self._follow(self._table, tokens, parent, found)].tolist()

    def match(self, tokens: np.ndarray, salt: str = "", limit: int | None = None) -> list[int]:
        """The longest chain of pages that holds a prefix of `tokens`, at most `limit` pages."""
        parent = self._roots.get(salt)
        if parent is None:
            return []
        most = len(tokens) // self.page_size
        given = np.ascontiguousarray(tokens, np.int32)
        return self.follow(given, parent, most if limit is None else min(limit, most))

    def insert(self, parent: int, tokens: np.ndarray, page: int) -> int:
        """Make `page` the child of `parent` that holds `tokens` (int32); returns the page that the
        tree has of those contents already, which stays, else -1."""
        return int(page_tree.insert(self.nodes, tokens, parent, page))

    def remove(self, page: int) -> int:
        """Take a leaf out; returns its parent."""
        parent = int(page_tree.remove(self.nodes, page))
        if parent == OUT:
            raise ValueError(f"page {page} is no leaf of the prefix tree")
        return parent

    def __contains__(self, page: int) -> bool:
        return page >= 0 and int(self.nodes.parent_P[page]) != OUT

    def __len__(self) -> int:
        return int(np.count_nonzero(self.nodes.parent_P != OUT))
