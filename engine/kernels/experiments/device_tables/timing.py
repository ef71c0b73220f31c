"""Time of calls on a GPU: in a graph, replayed without a pause, read from the device's events.

A table's row is a measured time, or `Refused` where the device or a library takes no such call.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import torch

Call: TypeAlias = Callable[[], Any]
Shape: TypeAlias = Mapping[str, object]
LEAST, REPLAYS, MOST = 0.01, 3, 200  # seconds to replay for; the fewest replays, and the most
HELD, ROUNDS = 2e-4, 64  # seconds that a graph is to hold, and how often at most it repeats calls


class Refused(NamedTuple):
    """A row that could not be measured: its shape by column name, its kernel, and why."""

    shape: Shape
    kernel: str
    why: str


def timed(shape: Shape, kernel: str, calls: Sequence[Call], device: str) -> Shape | Refused:
    """A row of a table; `Refused` where a library has no such kernel or memory ends."""
    try:
        return {**shape, "us": seconds(calls, device) * 1e6, "kernel": kernel}
    except RuntimeError as fault:  # torch's OutOfMemoryError is one, too
        why = str(fault).strip().partition("\n")[0] or type(fault).__name__
    if device == "cuda":
        torch.cuda.empty_cache()
    return Refused(shape, kernel, why)


def seconds(calls: Sequence[Call], device: str) -> float:
    """Mean time of the calls, which take turns: the median over replays of all of them.

    Every call runs once before. Calls must not ask the device for anything, which no graph holds.
    A graph repeats short calls and the host launches replays ahead, since launching one takes it as
    long as a small call takes the device.
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
    once = _captured(calls, 1)
    first = median(_replayed(once, REPLAYS))
    rounds = rounds_of(first)
    if first * REPLAYS >= LEAST:
        return first / len(calls)
    graph = once if rounds == 1 else _captured(calls, rounds)
    count = max(REPLAYS, min(MOST, int(LEAST / max(first * rounds, 1e-6))))
    return median(_replayed(graph, count)) / (len(calls) * rounds)


def rounds_of(taken: float) -> int:
    """How often a graph repeats calls that take `taken` seconds in all."""
    return max(1, min(ROUNDS, int(HELD / max(taken, 1e-9))))


def _captured(calls: Sequence[Call], rounds: int) -> torch.cuda.CUDAGraph:
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for call in calls:
                call()
    return graph


def _replayed(graph: torch.cuda.CUDAGraph, count: int) -> list[float]:
    """Seconds of each of `count` replays, which follow one that is not timed."""
    graph.replay()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    marks[0].record()
    for mark in marks[1:]:
        graph.replay()
        mark.record()
    marks[-1].synchronize()
    return [float(begin.elapsed_time(end)) / 1e3 for begin, end in pairwise(marks)]


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
