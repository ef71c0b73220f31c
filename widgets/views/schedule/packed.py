"""Spans too short for a pixel put together: one for each lane, layer, column and kind."""

from typing import Any

import numpy as np

KINDS = 4  # kinds of work that a column of a lane is taken to hold
MARGIN = 20  # lanes kept above and below the window


def summarised(
    spans: dict[str, np.ndarray],
    window: dict[str, Any],
    most: int,
    frame: dict[str, Any],
    kinds: int,
) -> tuple[dict[str, np.ndarray], int]:
    """Spans near the window, those shorter than a column put together; how many of them all had to
    be left out. `kinds`: how many there are in all."""
    start, stop, row = spans["start"], spans["stop"], spans["row"]
    begin, end, first, last = frame["begin"], frame["now"], 0, frame["lanes"]
    if {"start", "first"} <= window.keys():
        spare = (window["stop"] - window["start"]) / 2
        begin, end = window["start"] - spare, window["stop"] + spare
        first, last = window["first"] - MARGIN, window["last"] + MARGIN
    seen = np.flatnonzero((stop >= begin) & (start <= end) & (row >= first) & (row <= last))
    if len(seen) <= most:
        return {name: column[seen] for name, column in spans.items()}, 0
    rows = max(1, min(last, frame["lanes"]) - max(first, 0))
    columns = max(64, most // (2 * rows * max(1, min(kinds, KINDS))))
    wide = max(end - begin, 1e-12) / columns
    near = {name: column[seen] for name, column in spans.items()}
    took = near["stop"] - near["start"]
    short = took < wide
    long = kept = np.flatnonzero(~short)
    if len(long) > most:
        # Overlapping work beyond what a screen can hold: every n-th of it.
        kept = long[:: -(-len(long) // most)]
    packed = _together({k: v[short] for k, v in near.items()}, begin, wide, columns)
    return {k: np.concatenate([near[k][kept], packed[k]]) for k in near}, len(long) - len(kept)


def _together(
    spans: dict[str, np.ndarray], begin: float, wide: float, columns: int
) -> dict[str, np.ndarray]:
    """One span for each lane, layer, column and kind, as long as all of it together; one after
    another, the first of a column from the column's first start."""
    took = spans["stop"] - spans["start"]
    place = np.clip((spans["start"] - begin) / wide, 0, columns - 1).astype(np.int64)
    lane = spans["row"].astype(np.int64) * 2 + spans["layer"]
    kinds = int(spans["kind"].max(initial=0)) + 1
    key, cells = np.unique((lane * columns + place) * kinds + spans["kind"], return_inverse=True)
    longest = np.full(len(key), -1.0)
    np.maximum.at(longest, cells, took)
    of = np.zeros(len(key), np.int64)
    ahead = np.flatnonzero(took == longest[cells])
    of[cells[ahead]] = ahead
    out = {name: column[of] for name, column in spans.items()}
    column, of_key = np.unique(key // kinds, return_inverse=True)
    first = np.full(len(column), np.inf)
    np.minimum.at(first, of_key[cells], spans["start"])
    summed = np.bincount(cells, took, len(key))
    before = np.cumsum(summed) - summed  # of the same column: keys are in the order of columns
    before -= before[np.searchsorted(key // kinds, column)][of_key]
    # Not beyond the column: what begins in the next one has its own place there.
    end = np.maximum(begin + (column % columns + 1) * wide, first)[of_key]
    out["start"] = np.minimum(first[of_key] + before, end)
    out["stop"] = np.minimum(out["start"] + summed, end)
    for name in ("flops", "bytes"):
        out[name] = np.bincount(cells, spans[name], len(key))
    out["count"] = np.bincount(cells, minlength=len(key)).astype(np.uint32)
    return out
