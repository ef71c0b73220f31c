"""Level of detail of a schedule: all of it where it fits, else what its window shows.

Of spans too short for a pixel each lane gets one a column, as long as the column was busy and named
after the longest; the frame says how many it stands for.
"""

from typing import Any

import numpy as np

from widgets.views.schedule.depth import depths
from widgets.views.schedule.memory import memory
from widgets.views.schedule.pairs import errors
from widgets.views.schedule.path import critical

MOST = 25_000  # spans sent at a time
MOST_STATIC = 100_000  # kept in a page without a server
MOST_TAGS = 5_000  # distinct tags sent at a time
SMALL = {"kind": np.uint16, "flops": np.float32, "bytes": np.float32}  # types sent
MARGIN = 20  # lanes kept above and below the window
COLUMNS = ("row", "kind", "tag", "start", "stop", "flops", "bytes", "task", "layer")


def reduce(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`frame` with no more spans than the browser can show, and what only those need."""
    most = MOST_STATIC if window.get("static") else MOST
    total = len(frame["span_row"])
    spans = {name: frame[f"span_{name}"] for name in COLUMNS}
    spans["error"] = errors(spans)
    spans["count"] = np.ones(total, np.uint32)
    if total > most:
        spans = _summarised(spans, window, most, frame)
    spans["depth"], deep = depths(spans)
    kept = {k: v for k, v in frame.items() if not k.startswith(("span_", "level_"))}
    rows, layers = frame["lanes"], spans["layer"].astype(bool)
    return {
        **kept,
        **_tags(frame["tags"], spans),
        **{f"span_{k}": v.astype(SMALL.get(k, v.dtype)) for k, v in spans.items() if k != "tag"},
        "total": total,
        "deep": deep,
        "layers": 2 if layers.any() and not layers.all() else 1,
        "lane0": 0,
        "born": np.zeros(rows, np.float32),
        "ended": np.full(rows, np.inf, np.float32),
        **memory(frame, window),
        **(critical(frame) if window.get("critical") or window.get("static") else {}),
    }


def _summarised(
    spans: dict[str, np.ndarray], window: dict[str, Any], most: int, frame: dict[str, Any]
) -> dict[str, np.ndarray]:
    """Spans near the window, those shorter than a column put together."""
    start, stop, row = spans["start"], spans["stop"], spans["row"]
    begin, end, first, last = frame["begin"], frame["now"], 0, frame["lanes"]
    if "start" in window:
        spare = (window["stop"] - window["start"]) / 2
        begin, end = window["start"] - spare, window["stop"] + spare
        first, last = window["first"] - MARGIN, window["last"] + MARGIN
    seen = np.flatnonzero((stop >= begin) & (start <= end) & (row >= first) & (row <= last))
    if len(seen) <= most:
        return {name: column[seen] for name, column in spans.items()}
    rows = max(1, min(last, frame["lanes"]) - max(first, 0))
    columns = max(64, most // (2 * rows))
    wide = max(end - begin, 1e-12) / columns
    near = {name: column[seen] for name, column in spans.items()}
    took = near["stop"] - near["start"]
    short = took < wide
    long = np.flatnonzero(~short)
    if len(long) > most:
        # Overlapping work beyond what a screen can hold: every n-th of it.
        long = long[:: -(-len(long) // most)]
    packed = _together({k: v[short] for k, v in near.items()}, begin, wide, columns)
    return {k: np.concatenate([near[k][long], packed[k]]) for k in near}


def _together(
    spans: dict[str, np.ndarray], begin: float, wide: float, columns: int
) -> dict[str, np.ndarray]:
    """One span for each lane, layer and column: from its first start, as long as all together."""
    took = spans["stop"] - spans["start"]
    place = np.clip((spans["start"] - begin) / wide, 0, columns - 1).astype(np.int64)
    lane = spans["row"].astype(np.int64) * 2 + spans["layer"]
    key, cells = np.unique(lane * columns + place, return_inverse=True)
    longest = np.full(len(key), -1.0)
    np.maximum.at(longest, cells, took)
    of = np.zeros(len(key), np.int64)
    ahead = np.flatnonzero(took == longest[cells])
    of[cells[ahead]] = ahead
    out = {name: column[of] for name, column in spans.items()}
    first = np.full(len(key), np.inf)
    np.minimum.at(first, cells, spans["start"])
    summed = np.bincount(cells, took, len(key))
    # Not beyond the column: what begins in the next one has its own place there.
    out["start"] = first
    out["stop"] = np.minimum(first + summed, np.maximum(begin + (key % columns + 1) * wide, first))
    for name in ("flops", "bytes"):
        out[name] = np.bincount(cells, spans[name], len(key))
    out["count"] = np.bincount(cells, minlength=len(key)).astype(np.uint32)
    return out


def _tags(tags: list[str], spans: dict[str, np.ndarray]) -> dict[str, Any]:
    """The tags in use, numbered anew; only the commonest of very many."""
    used, places, counts = np.unique(spans["tag"], return_inverse=True, return_counts=True)
    if len(used) > MOST_TAGS:
        rank = np.empty(len(used), np.int64)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(used))
        kept = np.where(rank < MOST_TAGS, rank, MOST_TAGS)
        listed = [""] * (MOST_TAGS + 1)
        for place, tag in zip(kept.tolist(), used.tolist(), strict=True):
            if place < MOST_TAGS:
                listed[place] = tags[tag]
        return {"tags": listed, "span_tag": kept[places].astype(np.uint16)}
    return {"tags": [tags[tag] for tag in used.tolist()], "span_tag": places.astype(np.uint16)}
