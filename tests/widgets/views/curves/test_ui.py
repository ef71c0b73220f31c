"""Curves in a real browser: what is drawn, what the pointer says, and that text stays text."""

import numpy as np
import pytest

from engine.core.events import Blob, Opened
from engine.core.log import Log
from tests.widgets.browser import colours, move, open_page
from widgets.canvas.packing import pack
from widgets.export.replay import static_html, static_view
from widgets.view import view

pytestmark = pytest.mark.ui
CANVAS = ".pw-surface canvas"
SAID = """<script>window.said = new Set();
const write = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
  window.said.add(text); return write.call(this, text, ...at); };</script>"""
ATTACK = "<img src=x onerror=alert(1)>"


def sweep(name="ours") -> Log:
    """One panel over powers of two, time growing in step, with a bound under it."""
    facts = {"curves": {"step": {
        "x": "length (tokens)", "y": "time (s)", "log_x": True, "log_y": True,
    }}}  # fmt: skip
    log = Log([Opened(0.0, {}, facts=facts)])
    x = 2.0 ** np.arange(9, 14)
    for series, y in ((name, x * 1e-6), ("bandwidth (bound)", x * 5e-7)):
        log.blobs[series] = np.array([x, y])
        log.emit(Blob(0.1, f"curve/step/{series}", series, [2, len(x)]))
    return log


@pytest.mark.parametrize("dark", [False, True])
def test_lines_are_drawn_and_nothing_is_asked_outside(browser, dark):
    page, seen = open_page(browser, static_view(view("curves"), sweep(), is_dark=dark))
    assert colours(page, CANVAS) > 20
    assert "NaN" not in page.locator(".pw-figures").inner_text()
    assert seen.requests == [] and seen.errors == []


def test_the_pointer_says_the_point_with_units_and_how_far_the_bound_is(browser):
    page, _ = open_page(browser, static_view(view("curves"), sweep(), bar=False))
    box = page.locator(CANVAS).bounding_box()
    said = ""
    for share in np.linspace(0.1, 0.9, 30):  # along the line until a point is near
        move(page, CANVAS, share * box["width"], box["height"] * 0.5)
        said += page.locator(".pw-tip").inner_text()
        if "2,048" in said:
            break
    assert "length (tokens): 2,048" in said and "time: 2.05 ms" in said
    assert "bandwidth (bound): 1.02 ms (0.5×)" in said


def test_what_an_axis_counts_is_written_whole_in_a_narrow_panel(browser):
    log = sweep()
    log.opened.facts["curves"]["words moved over fast memory"] = {"y": "moved by products (words)"}
    log.blobs["b"] = np.array([[1.0, 2.0], [3.0, 4.0]])
    log.emit(Blob(0.2, "curve/words moved over fast memory/products", "b", [2, 2]))
    page, _ = open_page(browser, SAID + static_view(view("curves"), log, bar=False), 620, 700)
    said = page.evaluate("[...window.said]")
    assert {"words moved over fast memory", "moved by products (words)"} <= set(said)
    assert not any(text.endswith("…") for text in said)


def test_an_error_of_rounding_is_told_and_not_called_zero(browser):
    log = Log(
        [Opened(0.0, {}, facts={"curves": {"e": {"x": "step", "y": "error", "log_y": True}}})]
    )
    log.blobs["ours"] = np.array([[1.0, 2.0, 3.0], [2.22e-16] * 3])
    log.emit(Blob(0.1, "curve/e/ours", "ours", [2, 3]))
    page, seen = open_page(browser, static_view(view("curves"), log, bar=False))
    box = page.locator(CANVAS).bounding_box()
    move(page, CANVAS, 0.5 * box["width"], box["height"] * 0.5)
    assert "2.22e-16" in page.locator(".pw-tip").inner_text() and seen.errors == []


def test_an_empty_view_says_what_to_do(browser):
    frame = pack(view("curves").fold().frame())
    page, seen = open_page(browser, static_html("curves", [frame], [0.0]))
    assert "Start a run" in page.locator(".pw-empty").text_content() and seen.errors == []


def test_text_of_a_run_stays_text(browser):
    page, seen = open_page(browser, static_view(view("curves"), sweep(ATTACK)))
    for x in range(100, 1100, 100):
        move(page, CANVAS, x, 150)
    assert page.locator(".pw img").count() == 0 and seen.errors == [] and seen.requests == []
