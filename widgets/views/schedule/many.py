"""Spans that arrive as columns, a whole trace at once, into the columns of a schedule."""

from array import array
from typing import TYPE_CHECKING

import numpy as np

from engine.core.spans import Spans
from widgets.views.schedule.busy import Busy

if TYPE_CHECKING:
    from widgets.views.schedule.fold import Schedule


def take(schedule: "Schedule", spans: Spans, idle: tuple[str, ...]) -> None:
    """Append `spans`; kinds named in `idle` keep nobody busy."""
    lane = _numbers([schedule.lane(name) for name in spans.lanes], spans.lane)
    kind = _numbers([schedule.kind(name) for name in spans.names], spans.name)
    tag = _numbers([schedule.tag(text) for text in spans.tags], spans.tag)
    shown = lane >= 0
    columns = {"lane": lane, "kind": kind, "tag": tag, "start": spans.start, "stop": spans.stop}
    columns |= {"flops": spans.flops, "bytes": spans.bytes}
    for name, column in schedule.spans.items():
        column.frombytes(columns[name][shown].astype(column.typecode).tobytes())
    layer = np.array([modelled for _, modelled in schedule.of_tag], np.int32)[tag]
    resting = np.array([name in idle for name in schedule.kinds], bool)[kind]
    for place in np.unique(layer[shown]).tolist():
        mine = shown & (layer == place)
        ends = schedule.ends[place]
        ends[0] = min(ends[0], float(spans.start[mine].min()))
        ends[1] = max(ends[1], float(spans.stop[mine].max()))
        for one in np.unique(lane[mine & ~resting]).tolist():
            own = mine & ~resting & (lane == one)
            busy = schedule.busy.setdefault((one, place), Busy())
            for start, stop in zip(*union(spans.start[own], spans.stop[own]), strict=True):
                busy.add(start, stop)


def union(start: np.ndarray, stop: np.ndarray) -> tuple[array, array]:
    """The disjoint intervals that spans cover together, in order."""
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(stop[order])
    new = np.flatnonzero(np.append(True, start[1:] > reach[:-1])) if len(start) else np.array([])
    last = np.append(new[1:], len(start)).astype(np.intp) - 1
    return array("d", start[new.astype(np.intp)]), array("d", reach[last] if len(new) else [])


def _numbers(of: list[int], places: np.ndarray) -> np.ndarray:
    return np.array(of or [-1], np.int32)[places]
