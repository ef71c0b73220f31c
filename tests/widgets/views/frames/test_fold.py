"""The frames view's fold: tiles in order, what was refused beside what came."""

import numpy as np

from engine.core.events import Blob, Closed, Opened
from engine.core.log import Log
from widgets.fold import History
from widgets.views.frames import VIEW
from widgets.views.frames import fold as folding


def log_of(frames: int = 1) -> Log:
    log = Log([Opened(0.0, {})])
    for number in range(frames):
        told = ("given/stay/4/allowed", "refused/left/2/allowed/1", "asked/right/4/wrong")
        for part, rest in enumerate(told):
            name = f"frames/{number + part // 2}/{rest}"
            log.blobs[name] = np.eye(4, dtype=np.uint8).reshape(2, 2, 4)[:, :, :2]
            log.emit(Blob(number + part / 10, name, name, [2, 2, 2]))
    log.emit(Closed(float(frames), "finished"))
    return log


def test_tiles_stand_in_order_with_what_was_refused() -> None:
    shown = History(log_of(), VIEW.fold()).latest().frame()
    assert shown["state"].tolist() == [0, 3, 1] and shown["action"] == ["stay", "left", "right"]
    assert shown["number"].tolist() == [0, 0, 1] and shown["wrong"].tolist() == [0, 0, 1]
    assert shown["cells"].shape == (12,) and shown["rows"] == shown["columns"] == 2
    assert dict(shown["figures"])["thrown away"] == "1"


def test_the_cursor_shows_the_frames_so_far() -> None:
    history = History(log_of(), VIEW.fold())
    assert len(history.at(0.05).frame()["state"]) == 1
    assert not History(Log([Opened(0.0, {})]), VIEW.fold()).latest().frame()["number"].size


def test_of_many_tiles_the_newest_are_drawn() -> None:
    shown = History(log_of(folding.MOST), VIEW.fold()).latest().frame()
    assert len(shown["state"]) == folding.MOST and shown["left_out"] == 2 * folding.MOST
