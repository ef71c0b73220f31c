"""The sizing pages: whatever comes in the way of what is asked is one line on the page."""

import asyncio

import pytest

from engine.core.config import update
from workbench.pages.sizing import plan, predict
from workbench.pages.sizing.design import DesignPage
from workbench.pages.sizing.plan import PlanPage
from workbench.pages.sizing.predict import KINDS, Kind, PredictPage

SAID = "this could not be computed: KeyError: &#x27;&lt;none&gt;&#x27;"


def fails(*_):
    raise KeyError("<none>")


def test_a_prediction_that_ends_unexpectedly_is_a_line_and_the_next_is_shown(monkeypatch, caplog):
    page = PredictPage()
    page.kind = Kind("", page.kind.start, fails, "")
    asyncio.run(page._predict())
    assert SAID in page.shown.object and "KeyError" in caplog.text
    page.kind = KINDS["training"]
    monkeypatch.setattr(predict.as_html, "told", lambda found, dark: "the table")
    asyncio.run(page._predict())
    assert "the table" in page.shown.object


def test_a_prediction_that_cannot_be_told_is_a_line(monkeypatch):
    page = PredictPage()
    page.kind = Kind("", page.kind.start, lambda config: None, "")
    monkeypatch.setattr(predict.as_html, "told", fails)
    asyncio.run(page._predict())
    assert SAID in page.shown.object


@pytest.mark.parametrize(
    ("page", "name"), [(PredictPage, "training"), (PredictPage, "serving"), (DesignPage, "")]
)
def test_what_is_predicted_beside_is_of_as_many_devices(page, name, monkeypatch):
    if name:
        monkeypatch.setattr(predict, "asked_knobs", lambda: {"kind": name})
    made = page()
    made.config = update(
        made.config,
        {"training": {"cluster.devices": 64}, "serving": {"split.tensor": 8, "split.data": 8}}.get(
            name, {"devices": 64}
        ),
    )
    made.page()
    head = made.shell.page.main[0][0].object
    assert "split.tensor=8&amp;split.data=8" in head and "cluster.devices=64" in head
    assert "devices=64" in head.partition("design?")[2] and head.count("aria-current") == 1


def test_a_search_that_ends_unexpectedly_is_a_line_and_the_next_is_shown(monkeypatch):
    page = PlanPage()
    page._wanted = page.config
    monkeypatch.setattr(plan, "_searched", fails)
    asyncio.run(page._search())
    assert SAID in page.shown.object and page._found is None
    monkeypatch.setattr(plan, "_searched", lambda config: lambda dark: "a table")
    asyncio.run(page._search())
    assert page.shown.object == "a table"
