"""Prefix tree (radix tree): full pages by what they hold and what came before them.

A node is a page; its key is its parent page and its own tokens, which are compared themselves, so
no collision of hashes can hand out foreign keys and values. Each salt has a root of its own.
"""

import numpy as np

TOKEN_BYTES = 4


class PrefixTree:
    """Page-granular radix tree. Page numbers are nodes; roots are negative."""

    def __init__(self, pages: int, page_size: int) -> None:
        self.page_size = page_size
        self.children: dict[tuple[int, bytes], int] = {}
        self.keys: list[tuple[int, bytes] | None] = [None] * pages
        self.fanout: list[int] = [0] * pages  # children of each page
        self._roots: dict[str, int] = {}

    def root(self, salt: str = "") -> int:
        """The parent of first pages under `salt`."""
        return self._roots.setdefault(salt, -1 - len(self._roots))

    def child(self, parent: int, data: bytes) -> int:
        """The page that holds `data` (int32 tokens) after `parent`; -1 where there is none."""
        return self.children.get((parent, data), -1)

    def match(self, tokens: np.ndarray, salt: str = "", limit: int | None = None) -> list[int]:
        """The longest chain of pages that holds a prefix of `tokens`, at most `limit` pages."""
        width = self.page_size * TOKEN_BYTES
        data = np.ascontiguousarray(tokens, np.int32).tobytes()
        count = len(data) // width if limit is None else min(limit, len(data) // width)
        found: list[int] = []
        parent = self._roots.get(salt)
        if parent is None:
            return found
        for start in range(0, count * width, width):
            page = self.children.get((parent, data[start : start + width]), -1)
            if page < 0:
                break
            found.append(page)
            parent = page
        return found

    def insert(self, parent: int, data: bytes, page: int) -> None:
        """Make `page` the child of `parent` that holds `data`."""
        key = (parent, data)
        self.children[key] = page
        self.keys[page] = key
        if parent >= 0:
            self.fanout[parent] += 1

    def remove(self, page: int) -> int:
        """Take a leaf out; returns its parent."""
        key = self.keys[page]
        if key is None or self.fanout[page]:
            raise ValueError(f"page {page} is no leaf of the prefix tree")
        del self.children[key]
        self.keys[page] = None
        if key[0] >= 0:
            self.fanout[key[0]] -= 1
        return key[0]

    def __contains__(self, page: int) -> bool:
        return page >= 0 and self.keys[page] is not None

    def __len__(self) -> int:
        return len(self.children)
