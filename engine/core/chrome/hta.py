"""Holistic Trace Analysis' temporal breakdown of a trace, counted as HTA 0.5.0 counts it.

Where it and `breakdown` differ, each means something else:

- times of a trace that has fractions of a microsecond: starts are rounded up to whole ones and
  stops down, so that every kernel loses up to two and short ones leave gaps;
- a kernel is told by its name alone: what begins with "nccl" and goes on to "Kernel" communicates,
  "Memcpy", "Memset" and "dma" at the front copy, other names with Memcpy or Sync in them are
  nothing, and *all else computes*, a stream that waits for an event among it;
- waiting of streams for the host or one another stands among a device's work, so it is not idle;
- a host's operation that names a stream, as a Triton kernel's launch does, is a kernel to HTA and
  none here, counted as HTA counts either;
- one window over all devices of the trace, and where a profiler named two steps or more, only
  what was launched before the last of them began.
"""

import re
from dataclasses import dataclass

import numpy as np

from engine.core.chrome.category import NO_STREAM, ON_DEVICE, WAITING
from engine.core.chrome.device_trace import DeviceTrace

COMMUNICATES = re.compile(r"nccl.*Kernel")
COPIES = re.compile(r"Memcpy|Memset|dma")
NOTHING = re.compile(r"nccl.*Kernel|.*Memcpy|Memset|.*Sync")
STEP = "ProfilerStep"
MICRO = 1e-6
FINE = 1e12  # microseconds, up to which a double knows thousandths of one


@dataclass(frozen=True, slots=True)
class HtaBreakdown:
    """Seconds: `window` is `idle`, `compute` and `other`. `communication` and `overlapped`, how
    much of it compute ran beside, are those of HTA's overlap."""

    window: float
    idle: float
    compute: float
    communication: float
    overlapped: float

    @property
    def other(self) -> float:
        return self.window - self.idle - self.compute


def hta_breakdown(trace: DeviceTrace, last_step: bool = False) -> HtaBreakdown | None:
    """HTA's figures of a trace; None where nothing of a device is in it. `last_step`: with all that
    was launched in the profiler's last step (HTA's `include_last_profiler_step`)."""
    spans = trace.spans
    works = np.array([c in ON_DEVICE for c in trace.categories] or [False])
    waits = np.array([name in WAITING for name in spans.names] or [False])  # on any lane
    streams = np.array([tag != NO_STREAM for tag in spans.tags] or [False])
    there = np.array([bool(device) for device in trace.devices] or [False])
    on = works[spans.name] & there[spans.lane] | waits[spans.name] & streams[spans.tag]
    on &= _launched(trace, last_step)
    if not (on & works[spans.name]).any():
        return None
    start, stop = _whole(spans.start[on], spans.stop[on], trace.zero)
    kind = np.array([_kind(name) for name in spans.names], np.uint8)[spans.name[on]]
    busy, compute, communication = (
        _merged(start[mine], stop[mine]) for mine in (kind >= 0, kind == 2, kind == 1)
    )
    both = _merged(*(np.concatenate(pair) for pair in zip(compute, communication, strict=True)))
    window = float(busy[1][-1] - busy[0][0])
    took = [_length(part) for part in (busy, compute, communication, both)]
    told = (window, window - took[0], took[1], took[2], took[1] + took[2] - took[3])
    return HtaBreakdown(*(each * MICRO for each in told))


def _kind(name: str) -> int:
    """0: a copy or nothing, 1: communicates, 2: computes."""
    if COMMUNICATES.match(name):
        return 1
    return 0 if COPIES.match(name) or NOTHING.match(name) else 2


def _launched(trace: DeviceTrace, last_step: bool) -> np.ndarray:
    """Which spans were launched in the steps that count: all where fewer than two are named."""
    spans = trace.spans
    named = np.array([STEP in name for name in spans.names] or [False])
    steps = np.flatnonzero(named[spans.name])
    steps = steps[[not trace.devices[lane] for lane in spans.lane[steps].tolist()]]
    if len(set(spans.name[steps].tolist())) < 2:
        return np.ones(len(spans), bool)
    calls = np.where(trace.launched_by >= 0, spans.start[trace.launched_by], np.inf)
    if last_step:
        return calls <= spans.stop[steps].max()
    return calls < spans.start[steps].max()


def _whole(start: np.ndarray, stop: np.ndarray, zero: float) -> tuple[np.ndarray, np.ndarray]:
    """Starts and stops in microseconds of the format's own time; in whole ones where not all
    starts are. Stops of a trace that counts from 1970 come in quarters, as HTA adds them up."""
    began = np.round(start / MICRO, 3) + zero
    ended = began + np.round((stop - start) / MICRO, 3)
    if zero < FINE:  # the sum's own rounding
        began, ended = np.round(began, 3), np.round(ended, 3)
    if (began == np.floor(began)).all():
        return began, ended
    return np.ceil(began), np.floor(ended)


def _merged(start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intervals that spans cover together, in order. One that rounding turned about stays so, and
    counts less than nothing."""
    order = np.argsort(start, kind="stable")
    start, stop = start[order], stop[order]
    reach = np.maximum.accumulate(stop)
    new = np.flatnonzero(np.append(True, start[1:] > reach[:-1])[: len(start)])
    return start[new], np.maximum.reduceat(stop, new) if len(new) else stop


def _length(parts: tuple[np.ndarray, np.ndarray]) -> float:
    return float((parts[1] - parts[0]).sum())
