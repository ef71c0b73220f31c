"""Lanes of a device's units: operations that bind on arithmetic, on memory and on links run beside
one another, each as fast as its share of the units lets it, and all no faster than memory.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

COMPUTE, MEMORY, NETWORK = "compute", "memory", "network"
LANES = COMPUTE, MEMORY, NETWORK
DONE = 1e-9  # of an operation's seconds
LEAST = 0.1  # of memory's rate, which products never take whole


class Operation(NamedTuple):
    """One operation of one part in one layer. `reads`: of the memory's rate, alone."""

    name: str
    part: int
    lane: str
    seconds: float  # alone
    reads: float
    after: tuple[int, ...]  # operations of the list that must be over


class Placed(NamedTuple):
    """An operation as it went: seconds after the first began."""

    operation: Operation
    start: float
    stop: float


Rates: TypeAlias = "Callable[[dict[str, Operation]], dict[str, float]]"
"""Of each lane that is busy: how fast its operation goes, as a part of how fast alone."""


def placed(
    operations: Sequence[Operation], share: float, memory_units: float, network_units: float,
    beside: bool = True,
) -> list[Placed]:  # fmt: skip
    """When each operation starts and stops where the lanes share a device's units. `share`: units
    of attention beside products.

    Of units alone an operation has all. Attention reaches memory's rate with `memory_units` of
    them, a collective its link's with `network_units`, products get slower by what others take.
    """
    return in_lanes(
        operations, LANES, lambda busy: rates(busy, share, memory_units, network_units), beside
    )


def in_lanes(
    operations: Sequence[Operation], lanes: Sequence[str], rate_of: Rates, beside: bool = True
) -> list[Placed]:
    """When each operation starts and stops. `operations` in the order in which a lane prefers those
    of different parts and takes those of one; `beside`: lanes run beside one another."""
    waiting: dict[str, dict[int, deque[int]]] = {lane: {} for lane in lanes}  # by part, in order
    for n, one in enumerate(operations):
        waiting[one.lane].setdefault(one.part, deque()).append(n)
    left = [one.seconds for one in operations]
    over, starts, stops = [False] * len(left), [0.0] * len(left), [0.0] * len(left)
    running: dict[str, int] = {}
    now, going = 0.0, len(left)
    while going:
        for lane in lanes:
            if lane not in running and (beside or not running):
                heads = [own for own in waiting[lane].values() if own]
                ready = [own for own in heads if all(over[m] for m in operations[own[0]].after)]
                if ready:
                    first = min(ready, key=lambda own: own[0]).popleft()
                    running[lane], starts[first] = first, now
        rate = rate_of({lane: operations[n] for lane, n in running.items()})
        took = min(left[n] / rate[lane] for lane, n in running.items())
        now += took
        for lane, n in list(running.items()):
            left[n] -= took * rate[lane]
            if left[n] <= DONE * operations[n].seconds:
                over[n], stops[n] = True, now
                going -= 1
                del running[lane]
    return [Placed(*each) for each in zip(operations, starts, stops, strict=True)]


def rates(
    running: dict[str, Operation], share: float, memory_units: float, network_units: float
) -> dict[str, float]:
    """Of each lane that is busy: how fast its operation goes, as a part of how fast alone."""
    if len(running) == 1:
        return dict.fromkeys(running, 1.0)
    found = dict.fromkeys(running, 1.0)
    taken = network_units if NETWORK in running else 0.0
    if COMPUTE in running:
        taken += share if MEMORY in running else 0.0
        found[COMPUTE] = 1.0 - taken
        if MEMORY in running:
            found[MEMORY] = min(1.0, share / memory_units)
    elif MEMORY in running:
        found[MEMORY] = min(1.0, (1.0 - taken) / memory_units)
    asked = sum(found[lane] * one.reads for lane, one in running.items())
    if asked > 1.0 and MEMORY in running:  # what products leave of the memory's rate
        own = found[MEMORY] * running[MEMORY].reads
        found[MEMORY] *= max(1.0 - (asked - own), LEAST) / own
    return found
