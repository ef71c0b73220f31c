"""Telling moments: a run that is over rests where its cache still holds something."""

import pytest

from engine.core.events import Closed, Level, Opened, Page, Token
from engine.core.log import Log
from widgets.fold import History
from widgets.stage.telling import before_given_back, telling
from widgets.views.page_map import VIEW
from workbench.catalogue import study
from workbench.pages.study_panel import StudyPanel
from workbench.session import study_session

GIVES_BACK = ("adaptive-parallel-reasoning", "parathinker", "multi-stream", "streaming-thinker",
              "deepprune", "hogwild")  # fmt: skip


def two_threads(kept: int = 0) -> Log:
    """Two threads take three pages each, give them back at once at their end, b after a; the first
    `kept` stay in the prefix tree."""
    log = Log()
    log.emit(Opened(0.0, {}, facts={"pages": 8, "page_size": 4}))
    for page in range(6):
        log.emit(Page(1.0 + page, page, "ab"[page % 2], "take", 4 * (page // 2)))
        log.emit(Level(1.0 + page, "cache", "pages_used", page + 1.0))
    for page in range(kept):
        log.emit(Page(7.0, page, "", "index"))
    log.emit(Token(7.5, "b", "last"))
    for thread, time in (("a", 8.0), ("b", 9.0)):
        for page in range("ab".index(thread), 6, 2):
            log.emit(Page(time, page, thread, "drop"))
    log.emit(Closed(10.0, "finished"))
    return log


def test_a_cache_below_rests_just_before_it_gives_all_back():
    assert telling(two_threads(), ("threads", "page_map")) == 7.5
    assert History(two_threads(), VIEW.fold()).at(7.5).pool.used == 6
    assert telling(two_threads(), ("threads", "levels")) is None


def test_a_cache_that_keeps_half_for_prefixes_says_enough_at_the_end():
    assert before_given_back(two_threads(kept=2)) == 7.5
    assert before_given_back(two_threads(kept=3)) is None
    assert before_given_back(Log()) is None
    assert telling(two_threads(kept=6), ("token_river", "page_map")) is None
    assert telling(two_threads(kept=6), ("threads", "page_map")) == 7.5, "who reads whom is over"


def test_a_cache_that_stands_first_rests_at_its_fullest():
    assert telling(two_threads(), ("levels", "page_map")) == 6.0


@pytest.mark.parametrize("slug", [pytest.param(s, marks=() if s == "multi-stream" else
                                               pytest.mark.slow) for s in GIVES_BACK])  # fmt: skip
def test_a_page_opens_on_a_map_that_shows_something(slug):
    chosen = study(slug)
    panel = StudyPanel(chosen, study_session(chosen, chosen.config))
    run = panel.session.begin().wait(300)
    panel.look()
    if panel.stage.cursor.playing:
        panel.stage.cursor.tick(1e9)  # a brief first run is replayed
    panel.look()
    now = panel.stage.cursor.now
    panel.close()
    assert now < run.log.duration
    assert History(run.log, VIEW.fold()).at(now).pool.used > 0
    assert now > 0.5 * run.log.duration
