"""The prefix tree as an icicle: nodes of pages, chains with one child drawn as one block.

Along x lie token positions, so a block is as wide as its tokens and a path reads from left to
right; along y the leaves share the height.
"""

from typing import Any, Self

import numpy as np

MOST_BLOCKS = 600  # more do not fit the picture; small ones are drawn as one
ROOT = -1


class PrefixTree:
    """Pages under pages, as `index` and `free` events say, and the last lookup's path."""

    def __init__(self) -> None:
        self.parent: dict[int, int] = {}
        self.children: dict[int, tuple[int, ...]] = {ROOT: ()}
        self.version = 0

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
        reference count, the pages it stands for, and the first of them.

        Beyond 600 blocks the children with the fewest leaves are gathered in one block (`gathered`
        counts them). Blocks come in an order in which a parent is before its children.
        """
        leaves = self._leaves()
        rows: list[tuple[float, ...]] = []
        members: list[list[int]] = []
        total = leaves.get(ROOT, 0)
        work = [(ROOT, 0, 0.0, 1.0)] if total else []
        least = total / MOST_BLOCKS  # a block lower than this is gathered
        while work:
            page, depth, top, height = work.pop()
            kids = sorted(self.children.get(page, ()), key=lambda c: -leaves[c])
            small = [c for c in kids if leaves[c] < least and len(kids) > 1]
            for child in kids if not small else kids[: len(kids) - len(small)]:
                share = height * leaves[child] / leaves[page]
                chain = self._chain(child)
                most = max((int(refs[p]) for p in chain), default=0)
                rows.append((depth, len(chain), top, share, most, 0))
                members.append(chain)
                work.append((chain[-1], depth + len(chain), top, share))
                top += share
            if small:
                share = height * sum(leaves[c] for c in small) / leaves[page]
                most = max(int(refs[c]) for c in small)
                rows.append((depth, 1, top, share, most, len(small)))
                members.append(small)
        return _columns(rows, members, page_size)

    def _chain(self, page: int) -> list[int]:
        """`page` and what follows it for as long as each has one child."""
        chain = [page]
        while len(below := self.children.get(chain[-1], ())) == 1:
            chain.append(below[0])
        return chain

    def _leaves(self) -> dict[int, int]:
        """Leaves under every node, the root included."""
        order, work = [], [ROOT]
        while work:
            page = work.pop()
            order.append(page)
            work.extend(self.children.get(page, ()))
        count: dict[int, int] = {}
        for page in reversed(order):
            below = self.children.get(page, ())
            count[page] = sum(count[c] for c in below) if below else int(page != ROOT)
        return count


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
