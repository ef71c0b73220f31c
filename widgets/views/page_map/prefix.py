"""The prefix tree as an icicle: nodes of pages, chains with one child drawn as one block.

Along x lie token positions, so a block is as wide as its tokens and a path reads from left to
right; along y the leaves share the height.
"""

from typing import Any, Self

import numpy as np

MOST_LEAVES = 300  # more do not fit the picture's height
ROOT = -1


class PrefixTree:
    """Pages under pages, as `index` and `free` events say, and the last lookup's path."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}
        self.children: dict[int, tuple[int, ...]] = {ROOT: ()}
        self.version = 0
        self._chained: tuple[int, dict[int, list[int]], dict[int, int]] = (-1, {}, {})

    def index(self, page: int, parent: int) -> None:
        """`page` becomes a node under `parent` (-1: under the root)."""
        self.remove(page)
        above = parent if parent in self.parent else ROOT
        self.parent[page] = above
        self.children[above] = (*self.children.get(above, ()), page)
        self.version += 1

    def remove(self, page: int) -> None:
        """`page` leaves the tree; children it still had hang under the root."""
        if page not in self.parent:
            return
        above = self.parent.pop(page)
        self.children[above] = tuple(c for c in self.children[above] if c != page)
        for child in self.children.pop(page, ()):
            self.parent[child] = ROOT
            self.children[ROOT] = (*self.children[ROOT], child)
        if above != ROOT and not self.children[above]:
            del self.children[above]
        self.version += 1

    def copy(self) -> Self:
        other: Any = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.parent, other.children = dict(self.parent), dict(self.children)
        return other

    def blocks(self, refs: np.ndarray, page_size: int) -> dict[str, np.ndarray]:
        """The icicle: per block x and width in tokens, top and height as shares of 1, the highest
        reference count, the pages it stands for (`tree_offset` into `tree_pages`).

        Of more than 300 leaves those least in use are gathered, under each parent in one block;
        `tree_gathered` counts its branches. A parent's block comes before its children's.
        """
        uses = refs.tolist()  # one by one, a list's numbers come sooner than an array's
        kept, weight = self._choose(uses)
        chains, _ = self._chains()
        rows: list[tuple[float, ...]] = []
        members: list[list[int]] = []
        work = [(ROOT, 0, 0.0, 1.0)] if self.parent else []
        while work:
            page, depth, top, height = work.pop()
            for branch in kept[page]:
                if len(branch) > 1:
                    pages, gathered, tokens = self._below(branch), len(branch), 1
                    share = height / weight[page]
                else:
                    pages = chains[branch[0]]
                    gathered, tokens = 0, len(pages)
                    share = height * weight[pages[-1]] / weight[page]
                    if kept[pages[-1]]:
                        work.append((pages[-1], depth + tokens, top, share))
                most = uses[pages[0]] if len(pages) == 1 else max([uses[p] for p in pages])
                rows.append((depth, tokens, top, share, most, gathered))
                members.append(pages)
                top += share
        return _columns(rows, members, page_size)

    def _choose(self, uses: list[int]) -> tuple[dict[int, list[list[int]]], dict[int, int]]:
        """For the root and the end of each chain its branches as they are drawn, one child each or
        many gathered; and how many leaves are then drawn under it."""
        chains, leaves = self._chains()
        kept: dict[int, list[list[int]]] = {}
        weight: dict[int, int] = {}
        work = [(ROOT, MOST_LEAVES)]
        while work:
            page, room = work.pop()
            kids = list(self.children.get(page, ()))
            if len(kids) > 1:
                kids.sort(key=lambda c: (-uses[c], -leaves[c]))
            fits = len(kids) if len(kids) <= room else room - 1  # the others are two at least
            kept[page] = [[child] for child in kids[:fits]]
            if len(kids) > fits:
                kept[page].append(kids[fits:])
            under = sum([leaves[c] for c in kids[:fits]])
            for child in kids[:fits]:
                end = chains[child][-1]
                if end in self.children:
                    work.append((end, max(1, room * leaves[child] // under)))
                else:  # most are leaves: one line each, with nothing beyond
                    kept[end], weight[end] = [], 1
        for page in reversed(kept):  # children came after their parents
            if page not in weight:
                drawn = [1 if len(b) > 1 else weight[chains[b[0]][-1]] for b in kept[page]]
                weight[page] = max(1, sum(drawn))
        return kept, weight

    def _below(self, pages: list[int]) -> list[int]:
        """`pages` and all that hangs under them."""
        found, work = [], list(pages)
        while work:
            page = work.pop()
            found.append(page)
            work.extend(self.children.get(page, ()))
        return found

    def _chains(self) -> tuple[dict[int, list[int]], dict[int, int]]:
        """By its first page each chain, which goes on for as long as pages have one child, and the
        leaves under it. Kept until the tree changes."""
        version, chains, leaves = self._chained
        if version != self.version:
            chains, leaves, work = {}, {}, list(self.children[ROOT])
            while work:
                first = work.pop()
                chain = chains[first] = [first]
                while len(below := self.children.get(chain[-1], ())) == 1:
                    chain.append(below[0])
                work.extend(below)
            for first in reversed(chains):
                below = self.children.get(chains[first][-1], ())
                leaves[first] = sum(leaves[c] for c in below) if below else 1
            self._chained = self.version, chains, leaves
        return chains, leaves


def _columns(
    rows: list[tuple[float, ...]], members: list[list[int]], page_size: int
) -> dict[str, np.ndarray]:
    table = np.array(rows, np.float64).reshape(-1, 6)
    lengths = [len(m) for m in members]
    offsets = np.zeros(len(members) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return {
        "tree_x": (table[:, 0] * page_size).astype(np.int32),
        "tree_width": (table[:, 1] * page_size).astype(np.int32),
        "tree_top": table[:, 2].astype(np.float32),
        "tree_height": table[:, 3].astype(np.float32),
        "tree_refs": table[:, 4].astype(np.int32),
        "tree_gathered": table[:, 5].astype(np.int32),
        "tree_offset": offsets,
        "tree_pages": np.array([p for m in members for p in m], np.int32),
    }
