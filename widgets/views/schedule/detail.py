"""Level of detail of a schedule: all of it where it fits, else what its window shows.

Of spans too short for a pixel each lane gets one a column and kind, as long as the column was busy
with it; the frame says how many it stands for. Where a lane has more spans than can be told apart
the frame also says how busy all lanes were over the whole run, for a minimap.
"""

from typing import Any

import numpy as np

from widgets.views.schedule.depth import depths
from widgets.views.schedule.memory import memory
from widgets.views.schedule.messages import in_window
from widgets.views.schedule.packed import summarised
from widgets.views.schedule.pairs import errors
from widgets.views.schedule.path import critical

MOST = 25_000  # spans sent at a time
MOST_STATIC = 100_000  # kept in a page without a server
MOST_TAGS = 5_000  # distinct tags sent at a time
SMALL = {"kind": np.uint16, "flops": np.float32, "bytes": np.float32}  # types sent
LONG = 150  # spans of one lane from which on a run has a minimap
PARTS = 300  # parts of the run that a minimap shows
COLUMNS = ("row", "kind", "tag", "start", "stop", "flops", "bytes", "task", "layer")
LAUNCHED = ("from_row", "from_time")  # of a trace that knows its launches
GAPS = 6_000  # of streams, sent at a time: the longest in sight


def reduce(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`frame` with no more spans than the browser can show, and what only those need."""
    most = MOST_STATIC if window.get("static") else MOST
    total = len(frame["span_row"])
    columns = COLUMNS + LAUNCHED if "span_from_row" in frame else COLUMNS
    spans = {name: frame[f"span_{name}"] for name in columns}
    spans["error"] = errors(spans)
    spans["count"] = np.ones(total, np.uint32)
    missing = 0
    if total > most:
        kinds = len(frame["kinds"])
        spans, missing = summarised(spans, window, most, frame, kinds)
    spans["depth"], deep = depths(spans)
    kept = {
        k: v for k, v in frame.items() if not k.startswith(("span_", "level_", "gap_", "move_"))
    }
    rows, layers = frame["lanes"], spans["layer"].astype(bool)
    return {
        **kept,
        **_tags(frame["tags"], spans),
        **{f"span_{k}": v.astype(SMALL.get(k, v.dtype)) for k, v in spans.items() if k != "tag"},
        **_gaps(frame, window),
        **in_window(frame, window),
        "total": total,
        "missing": missing,
        "mini": minimap(frame),
        "deep": deep,
        "layers": 2 if layers.any() and not layers.all() else 1,
        "lane0": 0,
        "born": np.zeros(rows, np.float32),
        "ended": np.full(rows, np.inf, np.float32),
        **memory(frame, window),
        **(critical(frame) if window.get("critical") or window.get("static") else {}),
    }


def _gaps(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """The longest gaps of streams in and beside the window; {} where a run has none."""
    if "gap_row" not in frame:
        return {}
    start, stop = frame["gap_start"], frame["gap_stop"]
    near = np.arange(len(start))
    if "start" in window:
        spare = (window["stop"] - window["start"]) / 2
        near = near[(stop >= window["start"] - spare) & (start <= window["stop"] + spare)]
    if len(near) > GAPS:
        near = np.sort(near[np.argpartition(start[near] - stop[near], GAPS)[:GAPS]])
    return {k: frame[k][near] for k in ("gap_row", "gap_start", "gap_stop", "gap_cause")}


def minimap(frame: dict[str, Any]) -> np.ndarray | None:
    """How busy the lanes were together in each of `PARTS` equal parts of the run so far, as shares
    of the busiest part; None for a run short enough to be seen at once."""
    row, end = frame["span_row"], frame["now"]
    if not len(row) or end <= 0 or np.bincount(row).max() < LONG:
        return None
    works = ~np.array(frame["idle"], bool)[frame["span_kind"]]
    edges = [
        np.clip(frame[f"span_{at}"][works] / end * PARTS, 0, PARTS) for at in ("start", "stop")
    ]
    # The time before x that spans cover is a sum of ramps from their starts less those from their
    # stops: the second difference of it is non-zero only beside the edges.
    covered = np.zeros(PARTS + 2)
    for edge, sign in zip(edges, (1, -1), strict=True):
        whole = np.minimum(edge.astype(np.int64), PARTS)
        part = edge - whole
        covered += sign * np.bincount(whole, 1 - part, PARTS + 2)
        covered[1:] += sign * np.bincount(whole, part, PARTS + 2)[:-1]
    busy = np.cumsum(covered)[:PARTS]
    return (np.clip(busy / max(busy.max(), 1e-12), 0, 1)).astype(np.float32)


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
