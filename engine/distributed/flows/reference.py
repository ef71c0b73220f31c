"""The plain form of the clock that flows share: every rate worked out anew at every event.

The truth that `fluid` is held to; a thousand flows take it minutes.
"""

import heapq
from collections.abc import Mapping, Sequence

import numpy as np

from engine.distributed.flows.graph import Graph

SAME = 1e-12  # relative: moments and shares that differ by rounding only


def fair(held: Mapping[int, Sequence[int]], capacity: Sequence[float]) -> dict[int, float]:
    """Max-min fair rates. `held`: flow -> the channels it holds; the fullest channel is shared
    first, and what its flows leave on others is shared among the rest."""
    room, rates, left = dict(enumerate(capacity)), dict[int, float](), dict(held)
    while left:
        count: dict[int, int] = {}
        for channels in left.values():
            for channel in channels:
                count[channel] = count.get(channel, 0) + 1
        least = min(room[channel] / number for channel, number in count.items())
        full = {c for c, number in count.items() if room[c] / number <= least * (1 + SAME)}
        for flow in [flow for flow, channels in left.items() if full & set(channels)]:
            rates[flow] = least
            for channel in left.pop(flow):
                room[channel] = max(0.0, room[channel] - least)
    return rates


def play(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """`start` and `stop` of every task, NaN for those that wait for ever."""
    count = len(graph.seconds)
    start, stop = np.full(count, np.nan), np.full(count, np.nan)
    waits, left = graph.waits.copy(), graph.size.copy()
    timers: list[tuple[float, int]] = []
    flows: dict[int, list[int]] = {}
    capacity = graph.capacity.tolist()
    now = 0.0

    def begin(task: int) -> None:
        start[task] = now
        heapq.heappush(timers, (now + float(graph.seconds[task]), task))

    def end(task: int) -> None:
        stop[task] = now
        for other in graph.after[graph.after_first[task] : graph.after_first[task + 1]]:
            waits[other] -= 1
            if waits[other] == 0:
                begin(int(other))

    for task in np.flatnonzero(waits == 0):
        begin(int(task))
    while timers or flows:
        rates = fair(flows, capacity)
        ends = {flow: now + max(0.0, float(left[flow])) / rates[flow] for flow in flows}
        moment = min([*ends.values(), *(time for time, _ in timers[:1])])
        over = [flow for flow, time in ends.items() if time <= moment * (1 + SAME)]
        for flow in flows:
            left[flow] -= rates[flow] * (moment - now)
        now = moment
        for flow in over:
            del flows[flow]
            end(flow)
        while timers and timers[0][0] <= now * (1 + SAME):
            _, ready = heapq.heappop(timers)
            way = int(graph.way[ready])
            if way >= 0:
                flows[ready] = graph.held[graph.first[way] : graph.first[way + 1]].tolist()
            else:
                end(ready)
    return start, stop
