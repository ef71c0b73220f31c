"""A device's trace in a log: its spans with their categories, devices and launches together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from engine.core.chrome import launches
from engine.core.chrome.breakdown import DEVICES, Breakdown, Kernel, breakdowns, kernels
from engine.core.chrome.gaps import Gaps, gaps
from engine.core.events import Blob
from engine.core.log import Log
from engine.core.spans import NAME, Spans

ZERO = "zero"  # beside the categories in the header's fact


@dataclass(frozen=True, slots=True)
class DeviceTrace:
    """`categories` of the spans' names, `devices` of their lanes ("" for one of the host); `zero`:
    the format's own time, in microseconds, at which this one's begins."""

    spans: Spans
    categories: list[str]
    devices: list[str]
    launched_by: np.ndarray
    zero: float = 0.0

    @classmethod
    def of_log(cls, log: Log) -> Self | None:
        """What a log holds of it; None where no accelerator's work is told."""
        named = {event.name: event for event in log.of(Blob)}
        if NAME not in named or log.opened is None:
            return None
        spans = Spans.told(named[NAME], log.blobs, log.opened.facts)
        categories, devices = devices_of(log.opened.facts, spans)
        if not any(devices):
            return None
        by = launched(named.get(launches.NAME), log.blobs, len(spans))
        zero = log.opened.facts[DEVICES].get(ZERO, 0.0)
        return cls(spans, categories, devices, by, zero if isinstance(zero, float) else 0.0)

    def breakdowns(self) -> list[Breakdown]:
        """What each device did with its time."""
        return breakdowns(self.spans, self.categories, self.devices)

    def kernels(self) -> list[Kernel]:
        """What ran on the devices, the most time first."""
        return kernels(self.spans, self.categories, self.devices)

    def gaps(self) -> Gaps:
        """Where streams stood still, and what for."""
        return gaps(self.spans, self.categories, self.devices, self.launched_by)


def devices_of(facts: Mapping[str, Any], spans: Spans) -> tuple[list[str], list[str]]:
    """The categories of names and the devices of lanes that a header tells; none where it does not
    tell them of all."""
    said = facts.get(DEVICES)
    said = said if isinstance(said, dict) else {}
    categories, lanes = (
        [str(word) for word in said[key]] if isinstance(said.get(key), list) else []
        for key in ("categories", "lanes")
    )
    if len(categories) != len(spans.names) or len(lanes) != len(spans.lanes):
        return [], []
    return categories, lanes


def launched(event: Blob | None, blobs: Mapping[str, np.ndarray], count: int) -> np.ndarray:
    """The row of the call that started each of `count` spans, -1 where none is known."""
    if event is None:
        return np.full(count, launches.NOBODY, np.int32)
    return launches.told(event, blobs, count)
