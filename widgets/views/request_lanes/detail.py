"""Level of detail of the lanes: all of it where it fits, else what its window shows.

Ticks and steps too many for the pixels are thinned evenly; the frame says of how many.
"""

from typing import Any

import numpy as np

MOST = 20_000  # ticks, chunks or stretches sent at a time
MOST_STATIC = 200_000  # kept in a page without a server
MOST_STEPS = 3_000
MOST_LANES = 5_000  # lanes whose names are sent at a time
PER_LANE = (
    "names", "whys", "hue", "texture", "above", "born", "ended", "outcome",
    "modelled_lane", "depth", "born_place", "last_place", "born_step", "ended_step", "last_step",
)  # fmt: skip
MARGIN = 60  # lanes kept above and below the window


def near(
    lane: np.ndarray, start: np.ndarray, stop: np.ndarray, window: dict[str, Any]
) -> np.ndarray:
    """Places of what is near the window: start and stop in seconds, first and last lane."""
    if not {"start", "first"} <= window.keys():
        return np.arange(len(lane))
    spare = window["stop"] - window["start"]
    seen = (stop >= window["start"] - spare) & (start <= window["stop"] + spare)
    seen &= (lane >= window["first"] - MARGIN) & (lane <= window["last"] + MARGIN)
    return np.flatnonzero(seen)


def within(
    lane: np.ndarray, start: np.ndarray, stop: np.ndarray, window: dict[str, Any], most: int
) -> np.ndarray:
    """Places of at most `most`: all of them where that is few enough, else what is near the window,
    thinned evenly."""
    if len(lane) <= most:
        return np.arange(len(lane))
    picked = near(lane, start, stop, window)
    return picked[:: -(-len(picked) // most)] if len(picked) > most else picked


def lanes_within(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """The columns of one value a lane, cut to those near the window; `lane0` is the first."""
    first, last = 0, frame["lanes"]
    if last > MOST_LANES and not window.get("static"):
        first = max(0, min(int(window.get("first", last)) - MARGIN, last - MOST_LANES))
        last = first + MOST_LANES
    return {"lane0": first, **{k: frame[k][first:last] for k in PER_LANE if k in frame}}


def reduce(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """`frame` with no more ticks, chunks, stretches, moves and steps than the browser can show."""
    most = MOST_STATIC if window.get("static") else MOST
    out = {**frame, **lanes_within(frame, window), "ticks": len(frame["tick_lane"])}
    for kind in ("stretch", "chunk", "sent"):
        columns = [k for k in frame if k.startswith(f"{kind}_")]
        lane, start, stop = (frame[f"{kind}_{k}"] for k in ("lane", "start", "stop"))
        picked = within(lane, start, stop, window, most)
        out.update({k: frame[k][picked] for k in columns})
        if kind == "stretch":
            out["missing"] = max(0, len(near(lane, start, stop, window)) - len(picked))
    time = frame["tick_time"]
    picked = within(frame["tick_lane"], time, time, window, most)
    out.update(tick_lane=frame["tick_lane"][picked], tick_time=time[picked])
    return {**out, **_steps(frame, window)}


def _steps(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """Steps near the window; of too many every n-th, stretched up to the next one's start."""
    start, stop = frame["step_start"], frame["step_stop"]
    nowhere = np.zeros(len(start), np.int32)
    everywhere = {**window, "first": 0, "last": 0}
    picked = within(nowhere, start, stop, everywhere, MOST_STEPS)
    every = int(picked[1] - picked[0]) if len(picked) > 1 else 1
    ends = stop[picked]
    if every > 1:
        ends = np.append(start[picked][1:], stop[picked[-1]])
    return {
        "steps": len(start),
        "step_every": every,
        "step_number": picked.astype(np.int32),
        "step_start": start[picked],
        "step_stop": ends,
        "step_decode": frame["step_decode"][picked],
        "step_prefill": frame["step_prefill"][picked],
        "step_threads": frame["step_threads"][picked],
    }
