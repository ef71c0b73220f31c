"""The critical path of a schedule: from the last span back to the one it had to wait for.

A span waits for the span of its lane, or of its task in any lane, that ended last before it began.
"""

from typing import Any

import numpy as np

LONGEST = 20_000  # spans followed back


def critical(frame: dict[str, Any]) -> dict[str, Any]:
    """`path_row`, `path_start`, `path_stop` from first to last, and `path_note` in words.

    Of the measured spans, or of the modelled ones where none was measured.
    """
    idle = np.array([*frame["idle"], 0], bool)
    layer = frame["span_layer"].astype(bool)
    part = np.flatnonzero(~idle[frame["span_kind"]] & (layer if layer.all() else ~layer))
    if not len(part):
        return {}
    row, task = frame["span_row"][part], frame["span_task"][part]
    start, stop = frame["span_start"][part], frame["span_stop"][part]
    slack = 1e-9 * max(float(stop.max() - start.min()), 1e-12)
    groups = [_Groups(row, stop), _Groups(task, stop)]
    at = int(np.argmax(stop))
    path = [at]
    while len(path) < LONGEST:
        before = [group.before(at, start[at] + slack) for group in groups]
        if task[at] < 0:
            before.pop()
        known = [b for b in before if b >= 0 and start[b] < start[at]]
        if not known:
            break
        at = max(known, key=lambda b: stop[b])
        path.append(at)
    path.reverse()
    length, worked = float(stop[path[-1]] - start[path[0]]), float((stop - start)[path].sum())
    share = 100 * min(1.0, worked / length) if length > 0 else 100.0
    return {
        "path_row": row[path].astype(np.int32),
        "path_start": start[path],
        "path_stop": stop[path],
        "path_note": f"critical path: {len(path):,} spans, {share:.3g} % of it work",
    }


class _Groups:
    """Spans by a key, each group in order of its ends."""

    def __init__(self, key: np.ndarray, stop: np.ndarray) -> None:
        self.key = key
        self.order = np.lexsort((stop, key))
        self.stops = stop[self.order]
        keys = key[self.order]
        self.names, self.first = np.unique(keys, return_index=True)
        self.last = np.append(self.first[1:], len(keys))

    def before(self, at: int, time: float) -> int:
        """The span of the same group that ended last by `time`; -1 for none."""
        group = int(np.searchsorted(self.names, self.key[at]))
        first, last = self.first[group], self.last[group]
        place = first + int(np.searchsorted(self.stops[first:last], time, side="right")) - 1
        return int(self.order[place]) if place >= first else -1
