"""A study as ipywidgets: knobs and session follow one another, views show the newest run."""

import time

import ipywidgets
import pytest

from engine.core.config import Config, knob, knobs
from engine.core.events import Level, Span
from widgets.knobs.controls import label
from workbench.catalogue import study, study_files
from workbench.notebook.widget import StudyWidget, control
from workbench.session import Session
from workbench.study import Study


class Toy(Config):
    """Knobs of every type."""

    count: int = knob(3, "spans", low=1, high=50)
    long: float = knob(1.0, "of each", low=0.1, high=10.0, unit="s")
    even: bool = knob(True, "all alike", group="more")
    name: str = knob("work", "what they are called")
    limit: int | None = knob(None, "at most", low=1)


def drive(config, live):
    live.emit(Level(0.0, "queue", "waiting", 1.0))
    for number in range(config.count):
        live.emit(Span((number + 1) * config.long, "lane", config.name, number * config.long))


TOY = Study("toy", drive, Toy(), ("schedule", "levels"), (), "a toy", (), "is a toy")


@pytest.fixture
def shown():
    session = Session(drive, Toy(), study="toy", rest=0.0)
    made = StudyWidget(TOY, session)
    yield made
    made.close()
    session.close()


def settled(shown):
    shown.session.settle(60)
    until = time.monotonic() + 300
    while time.monotonic() < until:
        shown.look()
        if all(f.is_current(shown.stage.cursor.now, True) for f in shown.stage.feeds):
            return
    raise AssertionError("the views never caught up")


def test_a_turned_knob_runs_and_the_views_show_it(shown):
    settled(shown)
    before = bytes(shown.views["schedule"].frame)
    shown.knobs["count"].value = 7
    settled(shown)
    assert shown.session.run.config.count == 7
    assert bytes(shown.views["schedule"].frame) not in (b"", before)
    assert bytes(shown.views["levels"].frame) != b""
    assert shown.time.max == pytest.approx(7.0)


def test_a_knob_turned_in_code_moves_its_widget(shown):
    shown.session.turn({"long": 2.5, "even": False, "name": "x"})
    settled(shown)
    assert (shown.knobs["long"].value, shown.knobs["even"].value) == (2.5, False)
    assert shown.knobs["name"].value == "x"
    assert len(shown.session.runs) == 1


def test_what_does_not_fit_is_said_and_runs_nothing(shown):
    settled(shown)
    runs = len(shown.session.runs)
    shown.knobs["limit"].value = "<b>many"
    assert "limit" in shown.says.value and "<b>" not in shown.says.value
    assert len(shown.session.runs) == runs
    shown.knobs["limit"].value = "4"
    assert shown.session.config.limit == 4 and shown.says.value == ""


def test_the_time_slider_and_the_cursor_follow_one_another(shown):
    settled(shown)
    shown.time.value = 1.0
    assert shown.stage.cursor.now == 1.0 and not shown.stage.cursor.follow
    shown.stage.cursor.seek(2.0)
    shown.look()
    assert shown.time.value == 2.0


def test_a_linked_widget_turns_the_knob(shown):
    other = ipywidgets.IntSlider(min=1, max=50, value=3)
    ipywidgets.link((other, "value"), (shown.knobs["count"], "value"))
    other.value = 9
    assert shown.session.config.count == 9


@pytest.mark.parametrize("slug", study_files())
def test_every_knob_of_every_study_has_a_widget_with_its_value(slug):
    for one in knobs(study(slug).config):
        made = control(one)
        assert made.description == label(one)
        if isinstance(made, ipywidgets.IntSlider | ipywidgets.FloatSlider):
            assert made.value == pytest.approx(one.value)
