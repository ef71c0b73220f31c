"""The unmasking view's fold: every step's cells, text by text, at any moment."""

import numpy as np

from engine.core.events import Blob, Branch, Closed, Opened, Token
from engine.core.log import Log
from widgets.fold import History
from widgets.views.unmasking import VIEW
from widgets.views.unmasking import fold as folding


def log_of(texts: int = 2) -> Log:
    """Each text has two positions; the first step decides the second, the second the first."""
    log = Log([Opened(0.0, {})])
    for number in range(texts):
        log.emit(Branch(number + 0.1, f"r{number}", why="ab ="))
        for step, cells in enumerate(([[0.2, 0.9], [2, 1], [0, 1]], [[0.5, 0.0], [0, 1], [1, 0]])):
            name = f"unmasking/r{number}/{step}"
            log.blobs[name] = np.array(cells, np.float64)
            log.emit(Blob(number + 0.2 + step / 10, name, name, [3, 2]))
            log.emit(Token(number + 0.2 + step / 10, f"r{number}", "0:a " if step else "1:b "))
    log.emit(Closed(float(texts), "finished"))
    return log


def test_cells_lie_text_by_text_step_by_step():
    shown = History(log_of(), VIEW.fold()).latest().frame()
    assert shown["texts"] == ["r0", "r1"] and shown["asked"] == ["ab =", "ab ="]
    assert shown["steps"].tolist() == shown["places"].tolist() == [2, 2]
    assert shown["token"].tolist() == [-1, 1, 0, 1] * 2 and shown["words"] == ["a", "b"]
    assert shown["decided"].tolist() == [0, 1, 1, 0] * 2
    assert np.allclose(shown["score"], [0.2, 0.9, 0.5, 0.0] * 2)
    assert dict(shown["figures"])["tokens decided a step"] == "1"


def test_the_cursor_shows_the_steps_so_far():
    history = History(log_of(), VIEW.fold())
    assert history.at(0.25).frame()["steps"].tolist() == [1]
    assert history.at(1.25).frame()["steps"].tolist() == [2, 1]
    assert history.at(0.15).frame()["empty"]


def test_of_many_texts_the_first_are_drawn():
    shown = History(log_of(folding.MOST + 3), VIEW.fold()).latest().frame()
    assert len(shown["texts"]) == folding.MOST and shown["left_out"] == 3


def test_a_token_that_nobody_read_shows_its_number():
    silent = Log([event for event in log_of(1) if not isinstance(event, Token)])
    silent.blobs.update(log_of(1).blobs)
    shown = History(silent, VIEW.fold()).latest().frame()
    assert shown["words"] == ["0", "1"] and shown["token"].tolist() == [-1, 1, 0, 1]
