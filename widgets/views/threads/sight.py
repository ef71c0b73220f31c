"""Visibility: who sees which block of the cache, and at which positions, over a whole run.

`Level` events named `sees/<block>` tell it: the value is the offset of the block's positions in the
thread's view, -1 where the thread sees it no longer. In a run without them a block is all pages
that one thread took first, seen by whoever holds one of them. Sampled attention comes in the order
of a thread's view, that is by offset.
"""

import re
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from engine.core.events import Page
from widgets.canvas.columns import Columns

SEES = "sees/"
GONE = -1.0
TAKES = ("take", "copy", "swap_in")
LEAVES = ("drop", "swap_out")
NO_SHARES = np.zeros(0, np.int32)
SEPARATORS = re.compile(r"[:/#.@ ]")


class Sight:
    """Changes of what is seen, as columns; lanes by number, blocks numbered as they appear."""

    def __init__(self) -> None:
        self.blocks: dict[str, int] = {}
        self.told = Columns(lane="i4", block="i4", time="f8", value="f8")
        self.held = Columns(lane="i4", block="i4", time="f8", value="f8")
        self.origin: dict[int, int] = {}  # page -> the lane that took it first
        self.counts: dict[tuple[int, int], int] = {}  # lane and origin -> pages held
        self.framed: tuple[Any, dict[str, Any]] | None = None  # what the last frame showed
        self.view: dict[int, dict[int, float]] = {}  # lane -> blocks it sees now -> offset
        self.sampled: tuple[str, int] | None = None  # a blob, and how many of its tokens came
        self.looks = Columns(lane="i4", time="f8", stop="i4")  # a row for each sampled token
        self.shares = Columns(block="i4", value="f4")  # of its attention, up to its `stop`

    def tell(self, lane: int, block: str, time: float, offset: float) -> None:
        """The thread sees `block` from `offset` on; below zero: no longer."""
        place = self.blocks.setdefault(block, len(self.blocks))
        self.told.append(lane, place, time, offset if offset >= 0 else GONE)
        seen = self.view.setdefault(lane, {})
        if offset >= 0:
            seen[place] = offset
        else:
            seen.pop(place, None)

    def said(self, lane: int, time: float, blobs: Mapping[str, np.ndarray]) -> None:
        """A token of this lane: where attention was sampled last, the next row is the token's."""
        if self.sampled is None:
            return
        ref, place = self.sampled
        mass_BN = blobs.get(ref)
        if mass_BN is None or mass_BN.ndim != 2 or place >= len(mass_BN):
            self.sampled = None
            return
        self.sampled = ref, place + 1
        self._look(lane, time, mass_BN[place])

    def _look(self, lane: int, time: float, mass_N: np.ndarray) -> None:
        """How much attention the token gave to each block of its thread's view."""
        seen = self.view.get(lane, {})
        order = sorted(seen, key=lambda block: seen[block])
        for block, value in zip(order, mass_N.tolist(), strict=False):
            if value == value:  # NaN: it saw fewer
                self.shares.append(block, value)
        self.looks.append(lane, time, len(self.shares))

    def page(self, event: Page, lane: int) -> None:
        """`lane` took, joined or left a page."""
        if event.state in TAKES:
            self.origin[event.page] = lane
        elif event.state not in (*LEAVES, "hit", "share"):
            return
        origin = self.origin.get(event.page, lane)
        pair, leaves = (lane, origin), event.state in LEAVES
        count = self.counts.get(pair, 0) + (-1 if leaves else 1)
        self.counts[pair] = max(0, count)
        if count == 0 or (count == 1 and not leaves):
            value = GONE if leaves else float(event.start)
            self.held.append(lane, origin, event.time, value)

    def copy(self) -> Self:
        other = type(self)()
        other.blocks, other.origin = self.blocks.copy(), self.origin.copy()
        other.counts = self.counts.copy()
        other.told, other.held = self.told.copy(), self.held.copy()
        other.view = {lane: seen.copy() for lane, seen in self.view.items()}
        other.sampled = self.sampled
        other.looks, other.shares = self.looks.copy(), self.shares.copy()
        return other

    def frame(self, names: list[str], row: np.ndarray) -> dict[str, Any]:
        """Of a frame: names of blocks and of their owners, and the changes by row and column.

        The same arrays again while nothing is seen otherwise; `sight_reduced` is where whoever cuts
        them down keeps what came of it.
        """
        key = len(self.told), len(self.held), len(self.shares), len(self.looks), row.tobytes()
        if self.framed is None or self.framed[0] != key:
            self.framed = key, {**self._columns(names, row), "sight_reduced": {}}
        return self.framed[1]

    def _columns(self, names: list[str], row: np.ndarray) -> dict[str, Any]:
        if len(self.told):
            found, blocks = self.told, list(self.blocks)
            used = np.arange(len(blocks))
        else:
            found, blocks = self.held, names
            others = found["lane"] != found["block"]
            used = np.unique(found["block"][others])  # what only its owner holds is no news
        lanes = {name: lane for lane, name in enumerate(names)}
        owners = [owner_of(blocks[block], lanes) for block in used.tolist()]
        places = [int(row[lanes[o]]) if o in lanes else -1 for o in owners]
        order = np.argsort(np.array(places, np.int64), kind="stable")
        column = np.full(len(blocks) + 1, -1, np.int32)
        column[used[order]] = np.arange(len(order))
        kept = np.flatnonzero(column[found["block"]] >= 0)
        return {
            "blocks": [blocks[block] for block in used[order].tolist()],
            "by_pages": not len(self.told),
            "block_owner": [owners[place] for place in order.tolist()],
            "block_row": np.array([places[p] for p in order.tolist()], np.int32),
            "sight_row": row[found["lane"][kept]] if len(kept) else np.zeros(0, np.int32),
            "sight_block": column[found["block"][kept]],
            "sight_time": found["time"][kept],
            "sight_value": found["value"][kept],
            "look_row": row[self.looks["lane"]],
            "look_time": self.looks["time"],
            "look_stop": self.looks["stop"],
            "share_block": column[self.shares["block"]] if len(self.told) else NO_SHARES,
            "share_value": self.shares["value"],
        }


def owner_of(block: str, lanes: dict[str, int]) -> str:
    """The thread that a block's name begins with; the name itself where there is none."""
    if block in lanes:
        return block
    for sign in reversed(list(SEPARATORS.finditer(block))):
        if block[: sign.start()] in lanes:
            return block[: sign.start()]
    return block
