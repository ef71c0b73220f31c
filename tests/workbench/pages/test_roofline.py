"""The roofline page says first what its roofs are worth, and hands new ones to the live engine."""

from engine.core.events import Mark, Opened
from engine.core.log import Log
from engine.core.run import Run
from tests.engine.core.test_run import Counting, count
from workbench.pages import roofline
from workbench.pages.roofline import RooflinePage, doubt
from workbench.pages.shelf.shelf import Shelf


def test_roofs_in_doubt_are_told_above_the_picture_and_sound_ones_are_not():
    told = Mark(0.0, "machine", "caution", "roofs measured while other work took 90% of <it>")
    said = doubt(Log([Opened(0.0, {}), told]))
    assert "Roofs measured while other work took 90% of &lt;it&gt;" in said
    assert "say little here" in said
    assert doubt(Log([Opened(0.0, {}), Mark(0.0, "sweep", "counters", "none")])) == ""
    assert doubt(None) == ""


class Engine:
    """What the page needs of a live engine: its run, and what that was told."""

    def __init__(self) -> None:
        self.told: list[dict[str, object]] = []
        self.run = Run.execute(count, Counting(steps=1))
        self.run.tell = lambda **command: self.told.append(command)  # type: ignore[method-assign]


def test_the_live_engine_hears_of_roofs_that_are_new_and_of_no_others(monkeypatch):
    measured: list[object] = [None, "this machine"]
    monkeypatch.setattr(roofline, "known", lambda: measured.pop(0))
    monkeypatch.setattr(roofline, "run", lambda config, live, refresh, meanwhile: None)
    engine = Engine()
    page = RooflinePage(Shelf(), engine)
    page._run(page.session.config, None)
    assert engine.told == [{"do": "roofs"}]
    measured[:] = ["this machine", "this machine"]
    page._run(page.session.config, None)
    assert engine.told == [{"do": "roofs"}]
