"""Cache blocks and sights: runs of tokens that several threads see, each at places of its own.

A block is a run of tokens with pages of its own, its keys rotated as if it began at position 0.
What a thread sees is a list of sights: a block, where it begins in that thread's view, and how many
of its tokens are visible.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


@dataclass(slots=True, eq=False)
class Block:
    """Tokens written by one thread, appended to while `open`.

    `row`: where its page numbers lie in `Tables`. `borrowed`: its last page belongs to the block it
    was forked from, and has to be copied before anything is written there.
    """

    name: str
    owner: str  # the thread that writes it; "" nobody
    number: int  # order of opening
    row: int = -1
    pages: list[int] = field(default_factory=list)
    length: int = 0  # tokens
    open: bool = True
    borrowed: bool = False


class Sight(NamedTuple):
    """A block in a view: it begins at position `begin` and its first `seen` tokens are visible."""

    block: Block
    begin: int
    seen: int

    @property
    def end(self) -> int:
        """The position after its last visible token."""
        return self.begin + self.seen


def placed(blocks: Iterable[Block]) -> list[Sight]:
    """Blocks one after another from position 0, every token visible."""
    found, at = [], 0
    for block in blocks:
        found.append(Sight(block, at, block.length))
        at += block.length
    return found


def abreast(blocks: Iterable[Block]) -> list[Sight]:
    """The first block, all others but the last at the positions after it, then the last one after
    the longest of them; every token visible."""
    first, *others = blocks
    if not others:
        return placed([first])
    *middle, last = others
    after = first.length + max((block.length for block in middle), default=0)
    begins = [0, *[first.length] * len(middle), after]
    return [
        Sight(block, begin, block.length)
        for block, begin in zip([first, *middle, last], begins, strict=True)
    ]


class Tables:
    """Page numbers of all blocks as one array, a row for each block, padded with -1."""

    def __init__(self) -> None:
        self.array = np.full((16, 16), -1, np.int32)
        self.width = 1  # pages of the longest block so far
        self._free: list[int] = list(range(16))[::-1]

    def open(self, block: Block) -> None:
        """Give `block` a row."""
        if not self._free:
            count = len(self.array)
            self.array = np.vstack([self.array, np.full_like(self.array, -1)])
            self._free = list(range(count, 2 * count))[::-1]
        block.row = self._free.pop()
        self.update(block)

    def update(self, block: Block) -> None:
        """Write the pages of `block` into its row."""
        count = len(block.pages)
        while count > self.array.shape[1]:
            self.array = np.hstack([self.array, np.full_like(self.array, -1)])
        self.array[block.row, :count] = block.pages
        self.width = max(self.width, count)

    def close(self, block: Block) -> None:
        """Nobody sees `block` any more: its row is free."""
        self.array[block.row] = -1
        self._free.append(block.row)
        block.row = -1
