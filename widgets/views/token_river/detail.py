"""Level of detail of the tokens: all where they fit, else those its window shows and one whole
request, the one that is read."""

from typing import Any

import numpy as np

from widgets.views.request_lanes.detail import MOST, MOST_STATIC, lanes_within, within

MOST_READ = 4_000  # latest tokens of the request that is read


def reduce(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`frame` with at most 20,000 tokens and the text of those; `tokens` says of how many.

    `window`: start, stop, first and last lane shown; `reading` the lane that is read, `until` when.
    """
    lane, time = frame["token_lane"], frame["token_time"]
    picked = within(lane, time, time, window, MOST_STATIC if window.get("static") else MOST)
    out = {**frame, **lanes_within(frame, window), "tokens": len(lane), "thinned": False}
    if len(picked) == len(lane):
        return out
    out["thinned"] = True
    read = np.flatnonzero(lane == int(window.get("reading", -1)))
    read = read[: np.searchsorted(time[read], window.get("until", np.inf), "right")][-MOST_READ:]
    picked = np.union1d(picked, read)
    stops = frame["token_stop"].astype(np.int64)
    starts = np.append(0, stops[:-1])[picked]
    lengths = stops[picked] - starts
    ends = np.cumsum(lengths)
    from_where = np.repeat(starts - (ends - lengths), lengths) + np.arange(lengths.sum())
    names = ("lane", "time", "logprob", "accepted", "branch", "part")
    out.update({f"token_{k}": frame[f"token_{k}"][picked] for k in names})
    return {**out, "token_stop": ends.astype(np.int32), "text": frame["text"][from_where]}
