"""Histories: any moment of a long log, from a bounded number of kept states."""

import pytest

from engine.core.events import Level
from engine.core.log import Log
from widgets.fold import KEEP_EVERY, KEEP_MOST, Fold, History


class Sum(Fold):
    """The sum of all levels and how many there were."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, event) -> None:
        self.total, self.count = self.total + event.value, self.count + 1

    def frame(self):
        return {"total": self.total, "count": self.count}


@pytest.fixture(scope="module")
def log():
    return Log([Level(float(i), "a", "b", i % 7) for i in range(KEEP_EVERY * (2 * KEEP_MOST + 3))])


def test_every_moment_equals_a_fresh_fold(log):
    history = History(log, Sum())
    history.latest()
    for moment in (10, 300_000, 299_999, 5 * KEEP_EVERY, 5 * KEEP_EVERY - 1, 0, len(log)):
        events = log.events[: min(moment + 1, len(log))]
        assert history.at(float(moment)).frame() == {
            "total": sum(e.value for e in events),
            "count": len(events),
        }


def test_kept_states_stay_bounded(log):
    history = History(log, Sum())
    history.latest()
    assert len(history._kept) <= KEEP_MOST
    assert history._kept[0][0] == 0


def test_nothing_before_the_first_event_and_growth_afterwards():
    log = Log([Level(1.0, "a", "b", 1.0)])
    history = History(log, Sum())
    assert history.at(0.5).frame()["count"] == 0
    log.emit(Level(2.0, "a", "b", 1.0))
    assert history.latest().frame()["count"] == 2
