"""The modules view's fold: which feed-forward each token took, text by text, at any moment."""

import numpy as np

from engine.core.events import Blob, Closed, Opened, Token
from engine.core.log import Log
from widgets.fold import History
from widgets.views.modules import VIEW
from widgets.views.modules import fold as folding


def log_of(texts: int = 1) -> Log:
    """Each text has a prompt of two tokens, then one more; layers 2."""
    log = Log([Opened(0.0, {})])
    for number in range(texts):
        for first, rows in ((0, [[2, 1], [1, 1]]), (2, [[0, 2]])):
            name = f"modules/r{number}/{first}"
            log.blobs[name] = np.array(rows, np.int8)
            log.emit(Blob(number + 0.1 + first / 10, name, name, [len(rows), 2]))
            log.emit(Token(number + 0.15 + first / 10, f"r{number}", f"w{first}"))
    twin = "modules/r0 in hindsight/0"
    log.blobs[twin] = np.array([[1, 2], [2, 1], [1, 1]], np.int8)
    log.emit(Blob(texts + 0.0, twin, twin, [3, 2]))
    log.emit(Closed(texts + 0.1, "finished"))
    return log


def test_tokens_lie_text_by_text_and_a_twin_behind_its_text():
    shown = History(log_of(2), VIEW.fold()).latest().frame()
    assert shown["texts"] == ["r0", "r0 in hindsight", "r1"]
    assert shown["tokens"].tolist() == [3, 3, 3] and shown["layers"].tolist() == [2, 2, 2]
    assert shown["taken"].tolist()[:6] == [2, 1, 1, 1, 0, 2]
    assert shown["taken"].tolist()[6:12] == [1, 2, 2, 1, 1, 1]
    hues = shown["text_hue"].tolist()
    assert hues[0] == hues[1] != hues[2]


def test_words_stand_at_the_token_that_they_are_and_figures_are_of_texts_themselves():
    shown = History(log_of(), VIEW.fold()).latest().frame()
    assert shown["words"] == ["", "", "w0"] * 2
    assert shown["figures"] == [["tokens", "3"], ["big", "33.3 %"], ["small", "50 %"],
                                ["left out", "16.7 %"]]  # fmt: skip


def test_the_cursor_shows_the_tokens_so_far_and_what_is_computed_again_stands_once():
    history = History(log_of(), VIEW.fold())
    assert history.at(0.12).frame()["tokens"].tolist() == [2]
    assert history.at(0.05).frame()["empty"]
    log = log_of()
    log.events.pop()
    log.emit(Blob(1.05, "modules/r0/0", "modules/r0/0", [2, 2]))
    assert History(log, VIEW.fold()).latest().frame()["tokens"].tolist()[0] == 2


def test_of_many_texts_the_first_are_drawn():
    shown = History(log_of(folding.MOST + 3), VIEW.fold()).latest().frame()
    assert len(shown["texts"]) == folding.MOST and shown["left_out"] > 0
