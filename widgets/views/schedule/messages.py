"""Messages between lanes: `Move` events in a strip under the lane that sent and the one that
received each.
"""

from array import array
from typing import Any, Self

import numpy as np

from engine.core.events import Move
from widgets.views.schedule.packed import summarised

MOST = 6_000  # sent to the browser at a time
SENT, RECEIVED = 0, 1
COLUMNS = {"source": "i", "target": "i", "tag": "i", "start": "d", "stop": "d", "bytes": "d"}
LOOKS = {"row": np.int32, "side": np.uint8, "other": np.int32, "task": np.int32,
         "start": np.float64, "stop": np.float64, "bytes": np.float64,
         "count": np.uint32}  # fmt: skip


class Messages:
    """Moves as columns in order of arrival, their ends numbered once."""

    def __init__(self) -> None:
        self.ends: dict[str, int] = {}
        self.columns = {name: array(kind) for name, kind in COLUMNS.items()}

    def take(self, move: Move, tag: int) -> None:
        """Append one, unless it stays where it is; `tag`: its number among the spans' tags."""
        if move.source == move.target:
            return
        ends = (self.ends.setdefault(end, len(self.ends)) for end in (move.source, move.target))
        values = (*ends, tag, move.start, move.time, move.bytes)
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def frame(self, rows: dict[str, int], of_tag: np.ndarray) -> dict[str, Any]:
        """Each message between lanes that are shown twice, in the row of its sender and in that of
        its receiver; {} without any. `rows`: of lanes by name. `of_tag`: the task of each tag, and
        whether it is modelled; modelled messages are told where none was measured."""
        known = {name: np.array(column) for name, column in self.columns.items()}
        row = np.array([rows.get(end, -1) for end in self.ends] or [-1], np.int32)
        source, target = row[known["source"]], row[known["target"]]
        shown = (source >= 0) & (target >= 0)
        if not shown.any():
            return {}
        modelled = of_tag[known["tag"], 1].astype(bool)
        if not modelled[shown].all():
            shown &= ~modelled
        task = of_tag[known["tag"], 0][shown]
        ends, count = (source[shown], target[shown]), int(shown.sum())
        twice = {
            "row": np.concatenate(ends), "other": np.concatenate(ends[::-1]),
            "side": np.repeat([SENT, RECEIVED], count), "task": np.tile(task, 2),
            **{name: np.tile(known[name][shown], 2) for name in ("start", "stop", "bytes")},
        }  # fmt: skip
        return {f"move_{name}": column for name, column in twice.items()}

    def copy(self) -> Self:
        other = type(self)()
        other.ends = self.ends.copy()
        other.columns = {name: column[:] for name, column in self.columns.items()}
        return other


def in_window(frame: dict[str, Any], window: dict[str, Any]) -> dict[str, Any]:
    """The messages in and beside the window; of ones too short for a pixel one a column, with how
    many it stands for. {} for a run that has none."""
    if "move_row" not in frame:
        return {}
    names = ("row", "side", "other", "task", "start", "stop", "bytes")
    moves = {name: frame[f"move_{name}"] for name in names}
    total = len(moves["row"])
    still = np.zeros(total)
    moves |= {"count": np.ones(total, np.uint32), "layer": moves["side"], "flops": still,
              "kind": still.astype(np.int64)}  # fmt: skip
    if total > MOST:
        moves, _ = summarised(moves, window, MOST, frame, kinds=1)
    return {f"move_{name}": moves[name].astype(kind) for name, kind in LOOKS.items()}
