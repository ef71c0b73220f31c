"""Ranks of one job: their traces put on one axis, and the rank that the others wait for.

What all ranks communicate ends for all at once, so the clocks are set by the ends of communication
kernels that every rank ran equally often; without such, by the traces' own times. Of each of these
the last rank to begin is the one that the others wait for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.chrome.category import COMMUNICATION
from engine.core.chrome.read import MICRO, Trace
from engine.core.names import counted
from engine.core.spans import Spans

DAY = 86_400.0  # seconds: traces further apart than this were not taken at once
STANDS_OUT = 1.5  # times an equal part of the waiting, from which on a rank is the straggler


@dataclass(frozen=True, slots=True)
class Waiting:
    """Of `count` communications of all ranks: how often each rank began last, and the seconds that
    all others together waited for it then. `window`: seconds from the first to the last end."""

    count: int
    last: np.ndarray
    seconds: np.ndarray
    window: float


def numbered(traces: Sequence[Trace]) -> list[int]:
    """A rank for each trace: as they say, else in the order given."""
    said = [trace.rank for trace in traces]
    return said if -1 not in said and len(set(said)) == len(said) else list(range(len(traces)))


def shared(traces: Sequence[Trace]) -> tuple[np.ndarray, np.ndarray]:
    """Starts and stops [communications, ranks], seconds in each trace's own time, of kernels that
    all ranks ran equally often, the n-th with the n-th."""
    each = [_communications(trace) for trace in traces]
    starts, stops = [], []
    for name in each[0] if each else ():
        found = [rank.get(name) for rank in each]
        if all(f is not None and f.shape == found[0].shape for f in found):  # type: ignore[union-attr]
            both = np.stack([f for f in found if f is not None], axis=1)  # [2, ranks, K]
            starts.append(both[0].T)
            stops.append(both[1].T)
    nothing = np.zeros((0, len(traces)))
    return np.concatenate([nothing, *starts]), np.concatenate([nothing, *stops])


def _communications(trace: Trace) -> dict[str, np.ndarray]:
    """Name -> [start and stop, K] of a trace's communication kernels, in order of start."""
    spans = trace.spans
    wanted = np.array([c == COMMUNICATION for c in trace.categories] or [False])[spans.name]
    wanted &= np.array([bool(d) for d in trace.device_of] or [False])[spans.lane]
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(spans.start[rows], kind="stable")]
    name = spans.name[rows]
    return {
        spans.names[place]: np.stack([c[rows[name == place]] for c in (spans.start, spans.stop)])
        for place in np.unique(name).tolist()
    }


def offsets(traces: Sequence[Trace]) -> np.ndarray:
    """Seconds to add to each trace's times, so that all stand on one axis that begins at 0."""
    _, stops = shared(traces)
    if len(stops):
        found = np.median(stops[:, :1] - stops, axis=0)
    else:
        zeros = np.array([trace.zero for trace in traces]) * MICRO
        found = zeros - zeros.min() if np.ptp(zeros) < DAY else np.zeros(len(traces))
    return found - found.min()


def waiting(traces: Sequence[Trace], shift: np.ndarray) -> Waiting:
    """Who began last, with each trace's times moved by `shift`."""
    starts, stops = (times + shift for times in shared(traces))
    count = len(starts)
    last = np.argmax(starts, axis=1) if count else np.zeros(0, int)
    lost = (starts.max(axis=1, keepdims=True) - starts).sum(axis=1) if count else np.zeros(0)
    ranks = len(traces)
    window = float(stops.max() - starts.min()) if count else 0.0
    return Waiting(
        count, np.bincount(last, minlength=ranks), np.bincount(last, lost, ranks), window
    )


def straggler(found: Waiting, ranks: Sequence[int]) -> str:
    """Whom the others wait for, in a sentence."""
    if not found.count:
        return "no communication that all ranks ran equally often: nothing says who is late"
    whole, worst = float(found.seconds.sum()), int(np.argmax(found.seconds))
    of = counted(found.count, "communication")
    if not whole or found.seconds[worst] < STANDS_OUT * whole / len(ranks):
        return f"no rank stands out as late over {of}: each keeps the others waiting about alike"
    # Waiting is summed over ranks; as a share, it is that of one other rank.
    each = float(found.seconds[worst]) / max(1, len(ranks) - 1)
    share = f" ({100 * each / found.window:.2g}% of the time)" if found.window else ""
    return (
        f"rank {ranks[worst]} is the straggler: last to begin in {int(found.last[worst])} of {of}, "
        f"where each other rank waited {each * 1e3:.3g} ms for it together{share}"
    )


def together(traces: Sequence[Trace], ranks: Sequence[int], shift: np.ndarray) -> Trace:
    """One trace of all: lanes, devices and times of each rank under its number."""
    lanes, devices, categories, offset = list[str](), list[str](), dict[str, str](), 0
    names, tags = dict[str, int](), dict[str, int]()
    columns: dict[str, list[np.ndarray]] = {}
    for trace, rank, later in zip(traces, ranks, shift, strict=True):
        own = trace.spans
        for name, category in zip(own.names, trace.categories, strict=True):
            names.setdefault(name, len(names))
            categories.setdefault(name, category)
        for tag in own.tags:
            tags.setdefault(tag, len(tags))
        by = trace.launched_by
        part = {
            "start": own.start + later, "stop": own.stop + later, "lane": own.lane + len(lanes),
            "name": np.array([names[n] for n in own.names] or [-1], np.int32)[own.name],
            "tag": np.array([tags[t] for t in own.tags] or [-1], np.int32)[own.tag],
            "flops": own.flops, "bytes": own.bytes,
            "by": np.where(by >= 0, by + offset, -1).astype(np.int64),
        }  # fmt: skip
        for key, column in part.items():
            columns.setdefault(key, []).append(column)
        lanes += [f"rank {rank}, {lane}" for lane in own.lanes]
        devices += [device and f"rank {rank}, {device}" for device in trace.device_of]
        offset += len(own)
    made = {key: np.concatenate(parts) for key, parts in columns.items()}
    order = np.argsort(made["stop"], kind="stable")
    place = np.append(np.argsort(order, kind="stable"), -1)  # of each old row; of nobody, nobody
    by = place[made.pop("by")][order].astype(np.int32)
    spans = Spans(**{k: v[order] for k, v in made.items()}, lanes=lanes, names=list(names),
                  tags=list(tags))  # fmt: skip
    moved = [
        (sorted((row[0] + later, f"rank {rank}, {row[1]}", *row[2:]) for row in rows), rank)
        for trace, rank, later in zip(traces, ranks, shift, strict=True)
        for rows in (trace.levels, trace.marks)
    ]
    return Trace(
        spans,
        sorted(row for rows, _ in moved[::2] for row in rows),
        sorted(row for rows, _ in moved[1::2] for row in rows),
        list(dict.fromkeys(device for trace in traces for device in trace.devices)),
        list(categories.values()),
        devices,
        [f"rank {rank}: {note}" for trace, rank in zip(traces, ranks, strict=True)
         for note in trace.notes],
        by,
    )  # fmt: skip
