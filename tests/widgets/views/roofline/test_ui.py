"""The roofline in a real browser: what is drawn, what the pointer says; text stays text."""

import pytest

from tests.widgets.browser import colours, move, open_page
from tests.widgets.views.roofline.made import log, span
from widgets.canvas.drawing import source
from widgets.canvas.packing import pack
from widgets.export.replay import static_html, static_view
from widgets.view import view

pytestmark = pytest.mark.ui
CANVAS = ".pw-surface:first-child canvas"
TABLE = ".pw-surface:last-child canvas"
ATTACK = "<img src=x onerror=alert(1)>"


def work(name="panels"):
    return log(
        span(0.0, 0.1, 1e7, 0.78e8, "norm", name, dtype="float32", shape="8x512", phase="decode"),
        span(0.1, 0.4, 2e10, 1e7, "matmul", name, dtype="float32", phase="prefill"),
        span(0.4, 0.5, 1e11, 1e9, "matmul", dtype="bfloat16", device="gpu", grade="modelled"),
    )


@pytest.mark.parametrize("dark", [False, True])
def test_roofs_and_marks_are_drawn_and_nothing_is_asked_outside(browser, dark):
    page, seen = open_page(browser, static_view(view("roofline"), work(), is_dark=dark))
    assert colours(page, CANVAS) > 20 and colours(page, TABLE) > 20
    words = page.locator(".pw-figures").inner_text()
    assert "achieved / limit" in words and "NaN" not in words
    assert seen.requests == [] and seen.errors == []


def test_the_table_is_linked_to_the_plot_and_says_what_binds(browser):
    page, _ = open_page(browser, static_view(view("roofline"), work(), bar=False))
    before = page.locator(CANVAS).evaluate("c => c.toDataURL()")
    said = []
    for row in range(2):
        move(page, TABLE, 60, 28 + 24 * row + 12)
        said.append(page.locator(".pw-tip").inner_text())
    assert "compute-bound, 67% of float32 multiply-add" in said[0]
    assert "memory-bound, 78% of DRAM read" in said[1] and "8x512" in said[1]
    page.wait_for_timeout(100)
    assert page.locator(CANVAS).evaluate("c => c.toDataURL()") != before, "the mark is lit, too"


def test_an_empty_view_says_what_to_do(browser):
    frame = pack(view("roofline").fold().frame())
    page, seen = open_page(browser, static_html("roofline", [frame], [0.0]))
    assert "Start a run" in page.locator(".pw-empty").text_content() and seen.errors == []


def test_text_of_a_run_stays_text(browser):
    page, seen = open_page(browser, static_view(view("roofline"), work(ATTACK.replace(" ", "_"))))
    for row in range(3):
        move(page, TABLE, 60, 40 + 24 * row)
    assert page.locator(".pw img").count() == 0 and seen.errors == [] and seen.requests == []


def test_points_that_a_knob_moved_leave_a_trail_however_late_they_come(browser):
    """A live host's frames: a run, then another whose second point comes after the first."""
    page, seen = open_page(browser, static_view(view("roofline"), work(), bar=False))
    script = source("roofline").replace("export default", "window.drawing =")
    page.add_script_tag(content=f"{{{script}\nwindow.Points = Points;}}")
    found = page.evaluate(
        """() => {
          const like = {y: 1, ghost: false, part: false};
          const mark = (place, x) => ({...like, place, x, thread: `t${place}`});
          const points = new window.Points();
          points.follow({run: "a", marks: [mark(0, 1), mark(1, 2)]});
          points.follow({run: "b", marks: []});
          points.follow({run: "b", marks: [mark(0, 10)]});
          points.follow({run: "b", marks: [mark(0, 10), mark(1, 20)]});
          return [...points.trails.values()];
        }"""
    )
    assert found == [[[1, 1]], [[2, 1]]] and seen.errors == []
