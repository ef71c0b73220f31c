"""Threads as a family: in which order their lanes stand, and the chain of tokens that the end had
to wait for."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

FORK, JOIN = 0, 1  # kinds of edges

Jumps = Mapping[str, np.ndarray]  # columns of edges: to, source, kind, time, before, place


def preorder(above: Sequence[int]) -> tuple[list[int], list[int]]:
    """(lanes in the order to show them, depth of each lane) from each lane's parent, -1 for none.

    Children stand under their parent in order of appearance; parents that form a circle stand last.
    """
    below: dict[int, list[int]] = {}
    for lane, parent in enumerate(above):
        below.setdefault(parent, []).append(lane)
    order, depth, seen = [], [0] * len(above), [False] * len(above)
    for start in [*below.get(-1, []), *range(len(above))]:
        stack = [(start, 0)]
        while stack:
            lane, deep = stack.pop()
            if seen[lane]:
                continue
            seen[lane], depth[lane] = True, deep
            order.append(lane)
            stack += [(child, deep + 1) for child in reversed(below.get(lane, []))]
    return order, depth


def critical(jumps: Jumps, lane: int, time: float, place: int, born: Sequence[float]) -> Any:
    """The critical path that ends in `lane` at `time` (seconds) and `place` (tokens since the
    start), as columns from first to last: lane, start, stop, first, last.

    A thread waited for its parent where it was forked, and for a thread it read where that one had
    said more than itself.
    """
    found = []
    binding = (jumps["kind"] == FORK) | (jumps["place"] > jumps["before"])
    upto = len(binding)
    while True:
        known = np.flatnonzero((jumps["to"][:upto] == lane) & binding[:upto])
        known = known[jumps["time"][known] <= time]
        if not len(known):
            break
        at = int(known[-1])
        found.append((lane, jumps["time"][at], time, jumps["place"][at], place))
        lane, time, place, upto = (
            int(jumps["source"][at]), float(jumps["time"][at]), int(jumps["place"][at]), at,
        )  # fmt: skip
    found.append((lane, min(born[lane], time), time, 0, place))
    columns = np.array(found[::-1], np.float64).T
    return {
        "lane": columns[0].astype(np.int32),
        "start": columns[1],
        "stop": columns[2],
        "first": columns[3].astype(np.int32),
        "last": columns[4].astype(np.int32),
    }
