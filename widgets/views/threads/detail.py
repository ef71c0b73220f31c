"""Level of detail of the threads: all of it where it fits, else what its window shows.

Of tokens too many for the pixels each lane gets one mark a column, with their number and their mean
log-probability; the thread that is read comes whole beside them.
"""

from typing import Any

import numpy as np

from widgets.views.request_lanes.detail import lanes_within
from widgets.views.threads.sight import GONE

MOST = 24_000  # tokens or columns of tokens sent at a time
MOST_STATIC = 120_000  # kept in a page without a server
MOST_READ = 4_000  # latest tokens of the thread that is read
MOST_EDGES = 4_000
MOST_MARKS = 1_500
MOST_SEEN = 20_000  # changes of what is seen
MOST_BLOCKS = 256
MOST_SHARES = 20_000  # numbers of sampled attention
MOST_STEPS = 20_000  # ends of steps, for the axis
APART = ("token_", "sight_", "step_", "look_", "share_", "text")  # what is cut down
AXES = ("time", "step", "place")
SENT = ("time", "step", "place", "logprob", "accepted")  # of every token


def reduce(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`frame` with no more tokens, edges, marks and changes than the browser can show.

    `window`: the `axis` shown, start and stop in its units, first and last lane; `reading` the lane
    that is read, `until` when.
    """
    steps = frame["step_time"]
    whole = dict(frame)
    for name in ("edge_time", "mark_time", "wait_start", "wait_stop", "path_start", "path_stop"):
        place = name.replace("_time", "_step") if name.endswith("_time") else f"{name}_step"
        whole[place] = np.searchsorted(steps, frame[name], "right").astype(np.int32)
    return {
        **{k: v for k, v in frame.items() if not k.startswith(APART)},
        **_lanes(whole, window),
        **_tokens(whole, window),
        **_few(whole, "edge_", MOST_EDGES),
        **_marks(whole),
        **{k: whole[k] for k in ("wait_start_step", "wait_stop_step")},
        **{k: whole[k] for k in ("path_start_step", "path_stop_step")},
        **_sight(frame),
        **_looks(frame),
        **_axis(frame),
        "axes": AXES,
    }


def _lanes(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """The columns of one value a lane. A lane is not born after the step of its first token."""
    steps = frame["step_time"]
    spoke = np.searchsorted(steps, frame["first"], "left")
    born = np.minimum(np.searchsorted(steps, frame["born"], "right"), spoke)
    ended = np.searchsorted(steps, np.nan_to_num(frame["ended"], nan=np.inf), "right")
    last = np.searchsorted(steps, frame["last"], "right")
    more = {"born_step": born, "ended_step": ended, "last_step": last}
    return lanes_within({**frame, **{k: v.astype(np.int32) for k, v in more.items()}}, window)


def _tokens(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """Tokens by lane and time with their texts, or one mark a lane and column where many."""
    lane, total = frame["token_lane"], len(frame["token_lane"])
    most = MOST_STATIC if window.get("static") else MOST
    axis = window.get("axis", "time")
    picked = np.arange(total)
    at = _of(frame, axis if axis in AXES else "time", slice(None)) if total > most else picked
    if total > most and {"start", "first"} <= window.keys():
        picked = _within(at, axis == "place", lane, window, frame["lanes"])
    out: dict[str, Any] = {"tokens": total, "shown": total}
    if len(picked) > most:
        rows = (window["first"], window["last"]) if "first" in window else (0, frame["lanes"])
        out.update(_columns(frame, picked, at, rows, most), shown=0)
    else:
        picked = picked[np.argsort(lane[picked], kind="stable")]
        out.update(_exact(frame, picked, "token"), shown=len(picked))
    if len(picked) < total or out["shown"] == 0:
        out.update(_read(frame, window))
    return out


def _within(
    at: np.ndarray, is_mixed: bool, lane: np.ndarray, window: dict[str, Any], lanes: int
) -> np.ndarray:
    """Places of the tokens in and around the window. `at` never falls unless `is_mixed`."""
    spare = (window["stop"] - window["start"]) / 4
    low, high = window["start"] - spare, window["stop"] + spare
    if is_mixed:
        picked = np.flatnonzero((at >= low) & (at <= high))
    else:
        picked = np.arange(np.searchsorted(at, low, "left"), np.searchsorted(at, high, "right"))
    if window["first"] - 2 > 0 or window["last"] + 2 < lanes - 1:
        own = lane[picked]
        picked = picked[(own >= window["first"] - 2) & (own <= window["last"] + 2)]
    return picked


def _of(frame: dict[str, Any], name: str, picked: Any) -> np.ndarray:
    """A column of these tokens; a token stands in the step that was the next to end."""
    if name == "step":
        times = frame["token_time"][picked]
        return np.searchsorted(frame["step_time"], times, "left").astype(np.int32)
    column: np.ndarray = frame[f"token_{name}"][picked]
    return column


def _exact(frame: dict[str, Any], picked: np.ndarray, prefix: str) -> dict[str, Any]:
    """The columns and the text of these tokens."""
    stops = frame["token_stop"]
    starts = np.where(picked > 0, stops[picked - 1], 0).astype(np.int64)
    lengths = stops[picked] - starts
    ends = np.cumsum(lengths)
    where = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    text = "text" if prefix == "token" else f"{prefix}_text"
    return {
        **{f"{prefix}_{k}": _of(frame, k, picked) for k in ("lane", *SENT)},
        f"{prefix}_stop": ends.astype(np.int32),
        text: frame["text"][where],
    }


def _read(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """The latest tokens of the lane that is read, until when it is read."""
    own = np.flatnonzero(frame["token_lane"] == int(window.get("reading", -1)))
    upto = np.searchsorted(frame["token_time"][own], window.get("until", np.inf), "right")
    return _exact(frame, own[:upto][-MOST_READ:], "read")


def _columns(
    frame: dict[str, Any], picked: np.ndarray, at: np.ndarray, rows: tuple[int, int], most: int
) -> dict[str, Any]:
    """One mark a lane and column: from its first token to its last, with their mean."""
    every = len(picked) == len(at)  # views where all are shown: no copies
    lane, x = (column if every else column[picked] for column in (frame["token_lane"], at))
    low, high = int(lane.min()), int(lane.max())
    count = max(64, most // max(1, min(high, rows[1] + 2) - max(low, rows[0] - 2) + 1))
    begin, end = float(x.min()), float(x.max())
    wide = max(end - begin, 1e-12) / count
    key = np.minimum(((x - begin) / wide).astype(np.int64), count - 1)
    key += (lane - low) * count
    many = np.bincount(key, minlength=(high - low + 1) * count)
    used = np.flatnonzero(many)
    first, last = np.zeros(len(many), np.int64), np.zeros(len(many), np.int64)
    first[key[::-1]] = picked[::-1]  # of several, what is written last stays
    last[key] = picked
    first, last = first[used], last[used]
    logprob, accepted = frame["token_logprob"], frame["token_accepted"]
    if not every:
        logprob, accepted = logprob[picked], accepted[picked]
    likely = np.bincount(key, logprob, len(many))[used] / many[used]
    agreed = np.ones(len(used), np.uint8)
    if not accepted.all():
        agreed = (np.bincount(key, accepted, len(many))[used] > 0).astype(np.uint8)
    return {
        "token_lane": frame["token_lane"][first],
        **{f"token_{k}": _of(frame, k, first) for k in AXES},
        **{f"until_{k}": _of(frame, k, last) for k in AXES},
        "token_logprob": likely.astype(np.float32),
        "token_accepted": agreed,
        "token_count": np.minimum(many[used], 65_535).astype(np.uint16),
    }


def _few(frame: dict[str, Any], prefix: str, most: int) -> dict[str, Any]:
    """Columns of that prefix, thinned evenly to `most`; `<prefix>total` of how many."""
    columns = {k: v for k, v in frame.items() if k.startswith(prefix)}
    total = len(next(iter(columns.values())))
    every = -(-total // most) or 1
    return {**{k: v[::every] for k, v in columns.items()}, f"{prefix}total": total}


def _marks(frame: dict[str, Any]) -> dict[str, Any]:
    """The latest marks, with their words."""
    columns = {k: v[-MOST_MARKS:] for k, v in frame.items() if k.startswith("mark_")}
    return {**columns, "mark_texts": [list(pair) for pair in columns["mark_texts"]]}


def _sight(frame: dict[str, Any]) -> dict[str, Any]:
    """What is seen, cut down once as long as it does not change."""
    kept: dict[str, Any] = frame.get("sight_reduced", {})
    if not kept:
        kept.update(_sights(frame))
    return kept


def _sights(frame: dict[str, Any]) -> dict[str, Any]:
    """Changes of what is seen by lane and block in order of time, moves thinned where many."""
    row, block, value = (frame[f"sight_{k}"] for k in ("row", "block", "value"))
    blocks = len(frame["blocks"])
    kept = np.arange(len(row))
    if blocks > MOST_BLOCKS:
        kept = kept[block < MOST_BLOCKS]
    key = row[kept].astype(np.int64) * max(1, blocks) + block[kept]
    kept = kept[np.argsort(key, kind="stable")]
    total = len(kept)
    if total > MOST_SEEN:
        key = np.sort(key)
        starts = np.append(True, key[1:] != key[:-1])
        ends = np.append(starts[1:], True)
        gone = value[kept] == GONE
        flips = np.append(True, gone[1:] != gone[:-1])
        wanted = np.flatnonzero(starts | ends | flips)
        if len(wanted) > MOST_SEEN:
            wanted = np.union1d(np.flatnonzero(ends), wanted[:: -(-len(wanted) // MOST_SEEN)])
        moves = np.arange(0, total, -(-total // MOST_SEEN))
        kept = kept[np.union1d(wanted, moves)]
    return {
        "sight_row": _small(row[kept]),
        "sight_block": _small(block[kept]),
        "sight_time": frame["sight_time"][kept],
        "sight_value": value[kept].astype(np.float32),
        "sight_total": total,
        "blocks": frame["blocks"][:MOST_BLOCKS],
        "block_owner": frame["block_owner"][:MOST_BLOCKS],
        "block_row": frame["block_row"][:MOST_BLOCKS],
        "block_total": blocks,
    }


def _small(numbers: np.ndarray) -> np.ndarray:
    """In 16 bits where they fit."""
    fit = not len(numbers) or (numbers.min() >= 0 and numbers.max() < 1 << 16)
    return numbers.astype(np.uint16) if fit else numbers


def _looks(frame: dict[str, Any]) -> dict[str, Any]:
    """Sampled attention, thinned evenly where there are many samples. Blocks not sent are -1."""
    stops = frame["look_stop"].astype(np.int64)
    every = -(-len(frame["share_value"]) // MOST_SHARES) or 1
    kept = np.arange(len(stops))[::every]
    lengths = np.diff(stops, prepend=0)[kept]
    ends = np.cumsum(lengths)
    where = np.repeat(stops[kept] - ends, lengths) + np.arange(lengths.sum())
    block = frame["share_block"][where]
    return {
        "look_row": frame["look_row"][kept],
        "look_time": frame["look_time"][kept],
        "look_stop": ends.astype(np.int32),
        "share_block": np.where(block < MOST_BLOCKS, block, -1).astype(np.int32),
        "share_value": frame["share_value"][where],
    }


def _axis(frame: dict[str, Any]) -> dict[str, Any]:
    """What turns a moment into a step and into the furthest place reached by then, and back."""
    steps = frame["step_time"]
    every = -(-len(steps) // MOST_STEPS) or 1
    # How far along what it had to wait for any thread is by then.
    front = np.maximum.accumulate(frame["token_place"] + 1)
    rises = np.flatnonzero(np.diff(np.append(0, front)))
    thin = rises[:: -(-len(rises) // MOST_STEPS) or 1]
    return {
        "step_time": steps[every - 1 :: every],
        "step_every": every,
        "step_total": len(steps),
        "front_time": frame["token_time"][thin],
        "front_place": front[thin].astype(np.int32),
    }
