"""Memory of each lane over time, by kind, reduced to what its window shows."""

from typing import Any

import numpy as np

from widgets.chart.picture import extremes

POINTS = 60_000  # values sent at a time, over all lanes and kinds
FEWEST, MOST = 50, 1500  # moments of one lane


def memory(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`memory_first` and `memory_count` of each lane's moments in `memory_time`; `memory_value` has
    a row for each kind; `memory_peak` is each lane's most bytes. {} where nothing is known."""
    kinds, rows = len(frame["memory_kinds"]), frame["lanes"]
    if not len(frame["level_row"]):
        return {}
    most = int(np.clip(POINTS // max(1, rows * kinds), FEWEST, MOST))
    order = np.argsort(frame["level_row"], kind="stable")
    edges = np.searchsorted(frame["level_row"][order], np.arange(rows + 1))
    times, values, counts, peaks = [], [], [], []
    for row in range(rows):
        own = order[edges[row] : edges[row + 1]]
        time, held = _held(frame, own, kinds)
        peaks.append(float(held.sum(axis=0).max(initial=0.0)))
        keep = _near(time, held.sum(axis=0), window, most)
        times.append(time[keep])
        values.append(held[:, keep])
        counts.append(len(keep))
    return {
        "memory_time": np.concatenate(times),
        "memory_value": np.concatenate(values, axis=1).astype(np.float32),
        "memory_count": np.array(counts, np.uint32),
        "memory_first": np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.uint32),
        "memory_peak": np.array(peaks),
    }


def _held(frame: dict[str, Any], own: np.ndarray, kinds: int) -> tuple[np.ndarray, np.ndarray]:
    """Moments at which a lane's memory changed, and the bytes of each kind from then on."""
    time, kind, value = (frame[f"level_{k}"][own] for k in ("time", "kind", "value"))
    moments = np.unique(time)
    held = np.zeros((kinds, len(moments)))
    for place in range(kinds):
        mine = kind == place
        at = np.searchsorted(time[mine], moments, side="right") - 1
        if mine.any():
            held[place] = np.where(at >= 0, value[mine][np.maximum(at, 0)], 0.0)
    return moments, held


def _near(time: np.ndarray, total: np.ndarray, window: dict[str, Any], most: int) -> np.ndarray:
    """Places to keep: all, or those near the window with their highest and lowest totals."""
    if len(time) <= most or "start" not in window:
        return extremes(total, most)
    spare = window["stop"] - window["start"]
    first = max(0, int(np.searchsorted(time, window["start"] - spare)) - 1)
    last = int(np.searchsorted(time, window["stop"] + spare)) + 1
    return first + extremes(total[first:last], most)
