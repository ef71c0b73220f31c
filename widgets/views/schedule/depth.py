"""Rows within a lane: spans that overlap, such as a step and what it is made of, stand apart."""

import numpy as np

DEEPEST = 8  # rows of one lane; what lies deeper shares the last one


def depths(spans: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(depth of each span, number of rows of each lane up to the last that has any)."""
    row, start, stop = spans["row"], spans["start"], spans["stop"]
    depth = np.zeros(len(row), np.uint8)
    if not len(row):
        return depth, np.ones(0, np.uint8)
    lane = row.astype(np.int64) * 2 + spans["layer"]
    order = np.lexsort((-stop, start, lane))
    begin = start.min()
    whole = max(float(stop.max() - begin), 1e-12)
    # One running maximum over all lanes: each lane's times lie beyond those of the one before.
    offset = lane[order] * (2 * whole)
    reach = np.maximum.accumulate(stop[order] - begin + offset)
    overlaps = np.flatnonzero(start[order][1:] - begin + offset[1:] < reach[:-1] - 1e-9 * whole)
    for crowded in np.unique(lane[order][overlaps + 1]).tolist():
        own = order[lane[order] == crowded]
        depth[own] = _greedy(start[own].tolist(), stop[own].tolist(), 1e-9 * whole)
    deep = np.ones(int(row.max()) + 1, np.uint8)
    np.maximum.at(deep, row, depth + 1)
    return depth, deep


def _greedy(starts: list[float], stops: list[float], slack: float) -> list[int]:
    """The first row that is free at each span's start; `starts` in order."""
    free = [-np.inf] * DEEPEST
    found = []
    for start, stop in zip(starts, stops, strict=True):
        place = next((d for d in range(DEEPEST - 1) if free[d] <= start + slack), DEEPEST - 1)
        free[place] = stop
        found.append(place)
    return found
