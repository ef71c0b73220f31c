"""Gaps in the streams of an accelerator, and what each of them waited for.

A gap lies between the end of all that ran on a stream and the next start there. Up to the moment
its next work was launched it waits for the *launch*. From then on it waits for what ended last on
another stream of the same device before it began: a copy or a communication (*data*), or a kernel
(*another stream*). What remains is the device *starting* the work. The two in the middle are told
from times, since traces do not say which event a stream waited for; where no call is recorded for
a start, its gap is *unknown*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.chrome.category import COMPUTE, ON_DEVICE
from engine.core.chrome.launches import NOBODY
from engine.core.spans import Spans

LAUNCH, DATA, STREAM, STARTING, UNKNOWN = range(5)
CAUSES = ("launch", "data", "another stream", "starting", "unknown")
INFERRED = (CAUSES[DATA], CAUSES[STREAM])  # from times, as said above
SLACK = 1e-6  # seconds: times of a trace are told in whole microseconds


@dataclass(frozen=True, slots=True)
class Gaps:
    """`lane` of the spans' lanes, `start` and `stop` in seconds, `cause` a place in `CAUSES`, and
    `before` the row of the span that each gap ends with. A gap of two causes is two rows."""

    lane: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    cause: np.ndarray
    before: np.ndarray

    def __len__(self) -> int:
        return len(self.lane)


@dataclass(frozen=True, slots=True)
class Waited:
    """What the gaps of a lane waited for: how often, seconds together, seconds of the longest."""

    lane: int
    cause: str
    count: int
    seconds: float
    longest: float


def gaps(
    spans: Spans, categories: Sequence[str], devices: Sequence[str], launched_by: np.ndarray
) -> Gaps:
    """The gaps of every stream, in order of lane and time; arguments as `breakdowns` takes them
    and the row of the call that started each span."""
    kinds = np.array([ON_DEVICE.index(c) if c in ON_DEVICE else -1 for c in categories] or [-1])
    known = list(dict.fromkeys(filter(None, devices)))
    device = np.array([known.index(d) if d else -1 for d in devices] or [-1])
    on = np.flatnonzero((kinds[spans.name] >= 0) & (device[spans.lane] >= 0))
    rows: list[tuple[int, float, float, int, int]] = []
    for number in range(len(known)):
        # In order of their ends, as all spans are: the last to end before a moment stands last.
        own = on[device[spans.lane[on]] == number]
        for lane in np.unique(spans.lane[own]).tolist():
            others = own[spans.lane[own] != lane]
            rows += _of_lane(spans, kinds, launched_by, own[spans.lane[own] == lane], others)
    columns = list(zip(*rows, strict=True)) or [()] * 5
    kinds_of = (np.int32, np.float64, np.float64, np.uint8, np.int32)
    return Gaps(*(np.array(c, k) for c, k in zip(columns, kinds_of, strict=True)))


def _of_lane(
    spans: Spans, kinds: np.ndarray, launched_by: np.ndarray, mine: np.ndarray, others: np.ndarray
) -> list[tuple[int, float, float, int, int]]:
    mine = mine[np.argsort(spans.start[mine], kind="stable")]
    reach = np.maximum.accumulate(spans.stop[mine])
    stops, found = spans.stop[others], []
    for place in np.flatnonzero(spans.start[mine][1:] > reach[:-1] + 1e-12).tolist():
        row, begin = int(mine[place + 1]), float(reach[place])
        end, lane, call = float(spans.start[row]), int(spans.lane[row]), int(launched_by[row])
        if call == NOBODY:
            found.append((lane, begin, end, UNKNOWN, row))
            continue
        free = min(max(begin, float(spans.start[call])), end)
        if free > begin:
            found.append((lane, begin, free, LAUNCH, row))
        last = int(np.searchsorted(stops, end + SLACK, side="right")) - 1
        if last >= 0 and stops[last] > free:
            until = min(float(stops[last]), end)
            cause = STREAM if kinds[spans.name[others[last]]] == ON_DEVICE.index(COMPUTE) else DATA
            found.append((lane, free, until, cause, row))
            free = until
        if end > free:
            found.append((lane, free, end, STARTING, row))
    return found


def waited(gaps: Gaps) -> list[Waited]:
    """What the gaps of each lane waited for, the longest together first."""
    key = gaps.lane.astype(np.int64) * len(CAUSES) + gaps.cause
    took = gaps.stop - gaps.start
    names, place = np.unique(key, return_inverse=True)
    seconds, count = np.bincount(place, took, len(names)), np.bincount(place, minlength=len(names))
    longest = np.zeros(len(names))
    np.maximum.at(longest, place, took)
    found = [
        Waited(int(k) // len(CAUSES), CAUSES[int(k) % len(CAUSES)], int(n), float(s), float(most))
        for k, n, s, most in zip(names, count, seconds, longest, strict=True)
    ]
    return sorted(found, key=lambda each: -each.seconds)
