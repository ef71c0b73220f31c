"""The runs page: its figures follow a run that goes on."""

import time

from engine.core.run import Run
from tests.engine.core.test_run import Counting, count
from widgets.stage.stage import Stage
from workbench.pages.runs import Figures, RunsPage
from workbench.pages.shelf.shelf import Shelf


def counted(figures):
    """How many events the table tells of."""
    return int(figures.pane.object.split(">events<")[1].split("num'>")[1].split("<")[0])


def test_figures_are_told_anew_while_a_run_goes_on_and_when_it_ends(monkeypatch):
    monkeypatch.setattr("workbench.pages.runs.PAUSE", 0.0)
    monkeypatch.setattr("workbench.pages.runs.SHARE", 0)
    run = Run.start(count, Counting(steps=6), paused=True)
    monkeypatch.setattr("widgets.stage.track.GRACE", 0.0)
    stage = Stage(["levels"])
    stage.open(run)
    figures, seen = Figures(run, stage), []
    for steps in range(7):
        until = time.monotonic() + 300
        while run.log.duration < steps and time.monotonic() < until:
            run.step()
            time.sleep(0.005)
        stage.tick()
        seen.append(counted(figures))
    run.resume()
    run.wait(300)
    stage.tick()
    assert seen == sorted(seen) and len(set(seen)) > 3
    assert counted(figures) == len(run.log) and "finished" in figures.pane.object
    stage.stop()


def test_a_file_sent_again_and_one_that_is_empty_are_answered():
    page = RunsPage(Shelf())
    for names, data, said in (
        (["a.run"], [b"x"], "a.run"), (["b.run"], [b"x"], "b.run"), (["b.run"], [b"x"], "b.run"),
        *[(None, None, "nothing came")] * 2,  # no part of an empty one is sent
    ):  # fmt: skip
        page._say("")
        page.upload._update_file(names, None, data)
        assert said in page.fault.object


def test_a_run_that_another_page_has_dropped_is_said_to_be_gone():
    shelf = Shelf()
    for name in ("one", "two", "three"):
        shelf.keep(Run.execute(count, Counting(steps=1)), name)
    page = RunsPage(shelf)
    shelf.drop("one")
    page.choice.value = "one"
    assert "one&#x27;: no longer on the shelf" in page.fault.object
    assert (
        page.choice.options == ["two", "three"] and page.choice.value == page.name.value == "three"
    )
