"""Breakdown of an accelerator's time in a trace: compute, communication, copies, and nothing.

Seconds are those of the union of a category's spans over a device's streams, so what runs twice at
once counts once; the window is from the device's first span to the end of its last.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.chrome.category import COMMUNICATION, COMPUTE, MEMORY, ON_DEVICE
from engine.core.spans import Spans, union

DEVICES = "devices"  # the header's fact with the categories of names and the devices of lanes


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Of one device, in seconds: `window` is `busy` and `idle`; `overlapped` is how long it
    communicated and computed at once."""

    device: str
    window: float
    busy: float
    compute: float
    communication: float
    memory: float
    overlapped: float

    @property
    def idle(self) -> float:
        return self.window - self.busy

    def share(self, seconds: float) -> float:
        """`seconds` over the window; NaN where that is nothing."""
        return seconds / self.window if self.window else math.nan

    @property
    def exposed(self) -> float:
        """Seconds of communication with no computation beside them."""
        return self.communication - self.overlapped


def breakdowns(spans: Spans, categories: Sequence[str], devices: Sequence[str]) -> list[Breakdown]:
    """A breakdown of each device. `categories`: of each of the spans' names; `devices`: of each of
    their lanes the device's name, or "" for a lane of the host."""
    names = np.array([ON_DEVICE.index(c) if c in ON_DEVICE else -1 for c in categories] or [-1])
    known = list(dict.fromkeys(filter(None, devices)))
    lanes = np.array([known.index(d) if d else -1 for d in devices] or [-1])
    kind, place = names[spans.name], lanes[spans.lane]
    found = []
    for number, device in enumerate(known):
        own = (place == number) & (kind >= 0)
        if own.any():
            found.append(_of_one(device, spans.start[own], spans.stop[own], kind[own]))
    return found


def _of_one(device: str, start: np.ndarray, stop: np.ndarray, kind: np.ndarray) -> Breakdown:
    merged = {
        name: union(start[kind == place], stop[kind == place])
        for place, name in enumerate(ON_DEVICE)
    }
    took = {name: _length(*parts) for name, parts in merged.items()}
    compute, communication = merged[COMPUTE], merged[COMMUNICATION]
    either = union(*(np.concatenate(pair) for pair in zip(compute, communication, strict=True)))
    return Breakdown(
        device,
        float(stop.max() - start.min()),
        _length(*union(start, stop)),
        took[COMPUTE],
        took[COMMUNICATION],
        took[MEMORY],
        max(0.0, took[COMPUTE] + took[COMMUNICATION] - _length(*either)),
    )


def _length(start: np.ndarray, stop: np.ndarray) -> float:
    return float((stop - start).sum())


@dataclass(frozen=True, slots=True)
class Kernel:
    """All runs of one name on the devices: how often, seconds together, seconds of the longest."""

    name: str
    category: str
    count: int
    seconds: float
    longest: float


def kernels(spans: Spans, categories: Sequence[str], devices: Sequence[str]) -> list[Kernel]:
    """The kernels and copies of a trace, the most time first."""
    on = np.array([c in ON_DEVICE for c in categories] or [False])[spans.name]
    on &= np.array([bool(d) for d in devices] or [False])[spans.lane]
    name, took = spans.name[on], (spans.stop - spans.start)[on]
    count = np.bincount(name, minlength=len(spans.names))
    seconds = np.bincount(name, took, len(spans.names))
    longest = np.zeros(len(spans.names))
    np.maximum.at(longest, name, took)
    order = [int(i) for i in np.argsort(-seconds, kind="stable") if count[i]]
    return [
        Kernel(spans.names[i], categories[i], int(count[i]), float(seconds[i]), float(longest[i]))
        for i in order
    ]
