"""Work queue: the first free worker takes the next run of items, as GPUs hand out thread blocks."""

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Done(NamedTuple):
    """Who did an item and when, in seconds."""

    worker: int
    start: float
    stop: float


def first_free(
    runs: Iterable[Sequence[float]], workers: int, *, begin: float = 0.0,
    pace: Callable[[int], float] = lambda busy: 1.0,
) -> list[Done]:  # fmt: skip
    """Of every item in order, who did it when. A worker that takes a run does all of its items.

    Items are seconds at pace 1. `pace(busy)`: how many times as fast all of `busy` workers run
    while no more of them have anything to do.
    """
    waiting, number = iter(runs), 0
    begun: list[float] = []
    dealt: dict[int, Done] = {}
    left: list[tuple[float, int, int, int]] = []  # work done by then, worker, item, end of its run
    costs: list[float] = []

    def take(worker: int, item: int, last: int, now: float, work: float) -> None:
        nonlocal number
        while item == last:
            run = next(waiting, None)
            if run is None:
                return
            item, last = number, number + len(run)
            costs.extend(run)
            begun.extend([0.0] * len(run))
            number = last
        begun[item] = now
        heapq.heappush(left, (work + costs[item], worker, item, last))

    now, work = begin, 0.0
    for worker in range(workers):
        take(worker, 0, 0, now, work)
    while left:
        fast = pace(len(left))
        until, worker, item, last = heapq.heappop(left)
        now, work = now + (until - work) / fast, until
        dealt[item] = Done(worker, begun[item], now)
        take(worker, item + 1, last, now, work)
    return [dealt[item] for item in range(number)]
