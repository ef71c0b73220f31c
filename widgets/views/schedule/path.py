"""The critical path of a schedule: from the last span back to the one it had to wait for.

A span waits for the span of its lane, of its task in any lane, or the message to its lane, that
ended last before it began; a message for the span of its sender, of its task, or the message
before it on its way.
"""

from typing import Any

import numpy as np

from engine.core.names import counted
from widgets.views.schedule.messages import SENT

LONGEST = 20_000  # spans followed back


def critical(frame: dict[str, Any]) -> dict[str, Any]:
    """`path_row`, `path_start`, `path_stop` and, for messages (in the row that received them),
    `path_way`, from first to last; `path_note` in words.

    Of the measured spans, or of the modelled ones where none was measured.
    """
    idle = np.array([*frame["idle"], 0], bool)
    layer = frame["span_layer"].astype(bool)
    part = np.flatnonzero(~idle[frame["span_kind"]] & (layer if layer.all() else ~layer))
    if not len(part):
        return {}
    moves = _moves(frame)
    spans = len(part)
    start, stop, task = (
        np.concatenate([frame[f"span_{name}"][part], moves[name]])
        for name in ("start", "stop", "task")
    )
    row = np.concatenate([frame["span_row"][part], moves["other"]])
    slack = 1e-9 * max(float(stop.max() - start.min()), 1e-12)
    at = int(np.argmax(stop[:spans]))
    sender = moves["row"].astype(np.int64)
    way = sender * max(1, frame["lanes"]) + moves["other"]
    own, of_task = _Groups(row[:spans], stop), _Groups(task, stop)
    arrived, on_way = (_Groups(key, stop, spans) for key in (moves["other"], way))
    path = [at]
    while len(path) < LONGEST:
        time = start[at] + slack
        if at < spans:
            before = [own.before(row[at], time), arrived.before(row[at], time)]
        else:
            place = at - spans
            before = [own.before(sender[place], time), on_way.before(way[place], time)]
        if task[at] >= 0:
            before.append(of_task.before(task[at], time))
        known = [b for b in before if b >= 0 and start[b] < start[at]]
        if not known:
            break
        at = max(known, key=lambda b: stop[b])
        path.append(at)
    path.reverse()
    return {
        "path_row": row[path].astype(np.int32),
        "path_start": start[path],
        "path_stop": stop[path],
        "path_way": (np.array(path) >= spans).astype(np.uint8),
        "path_note": _note(start[path], stop[path], np.array(path) >= spans),
    }


def _moves(frame: dict[str, Any]) -> dict[str, np.ndarray]:
    """Each message once, as its sender has it; `other`: the row that received it."""
    names = ("row", "other", "task", "start", "stop")
    if "move_row" not in frame:
        return dict.fromkeys(names, np.zeros(0, np.int64))
    sent = frame["move_side"] == SENT
    return {name: frame[f"move_{name}"][sent] for name in names}


def _note(start: np.ndarray, stop: np.ndarray, way: np.ndarray) -> str:
    """How many spans and messages a path has, and how much of its time either took."""
    length = float(stop[-1] - start[0])

    def share(part: np.ndarray) -> str:
        took = float((stop - start)[part].sum())
        return f"{100 * min(1.0, took / length) if length > 0 else 100.0:.3g} %"

    spans = counted(int((~way).sum()), "span")
    if not way.any():
        return f"critical path: {spans}, {share(~way)} of it work"
    return (
        f"critical path: {spans} and {counted(int(way.sum()), 'message')}, {share(~way)} of it "
        f"work, {share(way)} on its way"
    )


class _Groups:
    """Nodes by a key, each group in order of its ends; the first has the number `first`."""

    def __init__(self, key: np.ndarray, stop: np.ndarray, first: int = 0) -> None:
        stop = stop[first : first + len(key)]
        self.order = np.lexsort((stop, key))
        self.stops = stop[self.order]
        self.names, self.begins = np.unique(key[self.order], return_index=True)
        self.ends = np.append(self.begins[1:], len(key))
        self.first = first

    def before(self, key: int, time: float) -> int:
        """The node of that group that ended last by `time`; -1 for none."""
        group = int(np.searchsorted(self.names, key))
        if group == len(self.names) or self.names[group] != key:
            return -1
        first, last = self.begins[group], self.ends[group]
        place = first + int(np.searchsorted(self.stops[first:last], time, side="right")) - 1
        return self.first + int(self.order[place]) if place >= first else -1
