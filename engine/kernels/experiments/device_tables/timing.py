"""Time of calls on a GPU: captured in a graph, replayed, read from the device's own events."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, TypeAlias

import torch

Call: TypeAlias = Callable[[], Any]
LEAST, REPLAYS = 0.01, 3  # seconds to replay for, and the fewest replays


def seconds(calls: Sequence[Call], device: str) -> float:
    """Mean time of the calls, which take turns: the median over replays of all of them.

    Every call runs once before. Calls must not ask the device for anything, which no graph holds.
    """
    if device == "cpu":
        return _on_processor(calls)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    first = _replay(graph)
    count = max(REPLAYS, min(200, int(LEAST / max(first, 1e-6))))
    return median(_replay(graph) for _ in range(count)) / len(calls)


def _replay(graph: torch.cuda.CUDAGraph) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3


def _on_processor(calls: Sequence[Call]) -> float:
    for call in calls:
        call()
    taken = []
    for _ in range(REPLAYS):
        began = perf_counter()
        for call in calls:
            call()
        taken.append(perf_counter() - began)
    return median(taken) / len(calls)
