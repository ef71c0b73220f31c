"""The canvas views in a real browser, each in a page of its own without server or network."""

import numpy as np
import pytest

from engine.core.events import Blob, Branch, Mark, Opened, Page, Span, Token
from engine.core.log import Log
from tests.widgets.browser import colours, move, open_page, pixel, settle, zoom
from tests.widgets.made_runs import serving
from widgets.canvas.drawing import CanvasDrawing
from widgets.canvas.packing import pack
from widgets.export.replay import static_html, static_view
from widgets.theme import HUES
from widgets.view import view

pytestmark = pytest.mark.ui
NAMES = ("page_map", "request_lanes", "token_river")
ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>"
CELLS, TREE, LEVELS = ".pw-cells canvas", ".pw-tree canvas", ".pw-levels canvas"


@pytest.fixture(scope="module")
def log() -> Log:
    return serving(1, pages=128, requests=24, arrive=0.8)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dark", [False, True])
def test_a_view_draws_and_asks_for_nothing_outside(browser, log, name, dark):
    page, seen = open_page(browser, static_view(view(name), log, is_dark=dark))
    assert colours(page, ".pw-surface canvas") > 20
    assert page.locator(".pw-title").first.text_content().startswith(view(name).question)
    figures = page.locator(".pw-figures").first
    assert 1 <= figures.locator(".pw-value").count() <= 4 and "NaN" not in figures.inner_text()
    assert seen.requests == [] and seen.errors == []


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_written_smaller_than_twelve_pixels(browser, log, name):
    page, _ = open_page(browser, static_view(view(name), log))
    sizes = page.evaluate(
        """() => [...document.querySelectorAll(".pw *")].filter((n) => n.innerText)
            .map((n) => parseFloat(getComputedStyle(n).fontSize))"""
    )
    assert min(sizes) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_view_says_what_to_do(browser, name):
    page, seen = open_page(browser, static_html(name, [pack(view(name).fold().frame())], [0.0]))
    shown = page.locator(".pw-empty")
    assert shown.is_visible() and "Start a run" in shown.text_content()
    assert seen.errors == []


def test_a_cell_has_its_owners_hue_and_says_everything_about_its_page(browser):
    facts = {"pages": 12, "page_size": 4}
    log = Log([
        Opened(0.0, {}, facts=facts),
        Page(0.1, 0, "r2", "take", 0, 4), Page(0.1, 1, "r2", "take", 4),
        Span(0.2, "r2", "prefill", 0.1, tag="0:8"), Span(0.2, "engine", "step", 0.1),
        Page(0.3, 0, "r3", "share", 0),
        Span(0.3, "engine", "step", 0.2), Span(0.4, "engine", "step", 0.3),
    ])  # fmt: skip
    html = static_view(view("page_map"), log, is_dark=False, bar=False)
    page, _ = open_page(browser, html)
    wanted = [int(HUES[2][i : i + 2], 16) for i in (1, 3, 5)]
    assert pixel(page, CELLS, 60, 10) == wanted  # page 1, r2 alone
    move(page, CELLS, 20, 20)
    words = page.locator(".pw-tip").inner_text()
    assert "Page 0: shared by 2" in words and "r2, r3" in words
    assert "positions 0–3 of r2" in words and "shared by a fork" in words
    move(page, CELLS, 60, 20)
    assert "Page 1: held by r2" in page.locator(".pw-tip").inner_text()
    move(page, CELLS, 220, 20)
    assert "Page 5: free" in page.locator(".pw-tip").inner_text()


def test_by_owner_a_row_names_its_request_and_its_shared_pages(browser, log):
    page, seen = open_page(browser, static_view(view("page_map"), log))
    page.evaluate("document.dispatchEvent(new CustomEvent('workbench-cursor', {detail: 0.2}))")
    page.get_by_text("By owner").click()
    settle(page)
    move(page, CELLS, 30, 8)
    assert "pages" in page.locator(".pw-tip").inner_text()
    assert "requests" in page.locator(".pw-said").inner_text()
    assert seen.errors == []


def test_the_slider_moves_every_view_on_the_page(browser, log):
    both = "".join(static_view(view(n), log) for n in ("page_map", "request_lanes"))
    page, seen = open_page(browser, both)
    before = page.locator(".pw-figures").first.inner_text()
    strip = page.evaluate("document.querySelectorAll('.pw-surface canvas')[3].toDataURL()")
    page.locator("input[type=range]").first.fill("300")
    settle(page)
    assert page.locator(".pw-figures").first.inner_text() != before
    assert page.evaluate("document.querySelectorAll('.pw-surface canvas')[3].toDataURL()") != strip
    values = [r.input_value() for r in page.locator("input[type=range]").all()]
    assert len(set(values)) == 1 and seen.errors == []


def test_hovering_a_request_lights_it_up_in_the_other_view(browser, log):
    both = "".join(static_view(view(n), log) for n in ("request_lanes", "token_river"))
    page, _ = open_page(browser, both, height=1400)
    chosen = []
    page.expose_function("heard", lambda owner: chosen.append(owner))
    page.evaluate("document.addEventListener('workbench-chosen', (e) => heard(e.detail))")
    move(page, ".pw-surface canvas", 400, 90)
    assert chosen and chosen[-1].startswith("r")
    page.context.close()


def test_a_click_on_a_step_moves_the_cursor_to_it_and_lights_its_batch(browser, log):
    page, _ = open_page(browser, static_view(view("request_lanes"), log))
    box = page.locator(".pw-surface canvas").bounding_box()
    page.mouse.click(box["x"] + 300, box["y"] + 20)
    settle(page)
    shown = float(page.locator("input[type=range]").input_value()) / 1000 * log.duration
    ends = [s.stop for s in log.of(Span) if s.name == "step"]
    assert min(abs(shown - end) for end in ends) < log.duration / 500
    assert "Step" in page.locator(".pw-tip").inner_text()


def test_the_wheel_zooms_and_a_double_click_shows_all_again(browser, log):
    page, _ = open_page(browser, static_view(view("token_river"), log))
    button = page.get_by_text("Show all")
    assert not button.is_visible()
    whole = page.evaluate("document.querySelector('.pw-surface canvas').toDataURL()")
    move(page, ".pw-surface canvas", 500, 100)
    zoom(page, 6)
    assert button.is_visible()
    button.click()
    page.mouse.move(5, 5)
    settle(page)
    assert page.evaluate("document.querySelector('.pw-surface canvas').toDataURL()") == whole


@pytest.mark.parametrize("name", ["token_river", "request_lanes", "schedule", "page_map"])
def test_a_plain_wheel_scrolls_the_page_until_a_chart_was_clicked(browser, log, name):
    page, seen = open_page(browser, static_view(view(name), log) + "<p style='height:3000px'>")
    canvas = ".pw-surface canvas"
    before = page.evaluate(f"document.querySelector('{canvas}').toDataURL()")
    move(page, canvas, 500, 100)
    page.mouse.wheel(0, 60)
    page.wait_for_function("scrollY === 60")
    tip = page.locator(".pw-wheel")
    if name != "page_map":  # by memory it has nothing to scroll
        assert tip.inner_text().endswith("+ wheel zooms")
        page.wait_for_function("!document.querySelector('.pw-wheel.on')")
    page.mouse.move(5, 5)
    settle(page)
    assert page.evaluate(f"document.querySelector('{canvas}').toDataURL()") == before
    assert seen.errors == []


def test_a_clicked_chart_has_the_wheel_until_esc_and_none_that_it_cannot_use(browser, log):
    page, _ = open_page(
        browser, static_view(view("token_river"), log) + "<p style='height:3000px'>"
    )
    move(page, ".pw-surface canvas", 500, 100)
    page.mouse.down()
    page.mouse.up()
    page.mouse.wheel(0, -300)
    settle(page)
    assert page.get_by_text("Show all").is_visible() and page.evaluate("scrollY") == 0
    for _ in range(4):  # all the way out again, in as many turns as it takes
        if page.get_by_text("Show all").is_visible():
            page.mouse.wheel(0, 300)
            settle(page)
    assert not page.get_by_text("Show all").is_visible() and page.evaluate("scrollY") == 0
    page.mouse.wheel(0, 50)  # nothing is left to zoom out of
    page.wait_for_function("scrollY === 50")
    page.keyboard.press("Escape")
    page.mouse.wheel(0, -30)
    page.wait_for_function("scrollY === 20")
    assert not page.get_by_text("Show all").is_visible()


@pytest.mark.parametrize("name", NAMES)
def test_text_of_a_run_stays_text(browser, name):
    log = Log([
        Opened(0.0, {}, facts={"pages": 4, "page_size": 4}),
        Branch(0.1, ATTACK, state="queued"), Branch(0.1, ATTACK, state="running"),
        Page(0.1, 0, ATTACK, "take", 0, why=ATTACK), Mark(0.1, "cache", "evict", ATTACK),
        Mark(0.1, "cache", "lookup", ATTACK), Page(0.15, 1, ATTACK, "hit", 4),
        Span(0.2, ATTACK, "prefill", 0.1, tag="0:4"), Token(0.2, ATTACK, ATTACK, -0.5),
        Span(0.2, "engine", "step", 0.1, tag=ATTACK), Blob(0.2, ATTACK, "none", [1]),
        Branch(0.3, ATTACK, state="aborted", why=ATTACK),
    ])  # fmt: skip
    page, seen = open_page(browser, static_view(view(name), log))
    page.evaluate("document.dispatchEvent(new CustomEvent('workbench-cursor', {detail: 0.2}))")
    for x, y in ((20, 20), (100, 12), (150, 90), (300, 100)):
        move(page, ".pw-surface canvas", x, y)
    page.wait_for_timeout(100)
    assert page.locator(".pw img, .pw script").count() == 0
    assert seen.errors == [] and seen.requests == []


def test_the_layer_and_head_of_attention_can_be_chosen_where_the_sample_has_them(browser):
    log = Log([Opened(0.0, {}, facts={"pages": 4, "page_size": 4}), Page(0.1, 0, "r0", "take")])
    fold = view("page_map").fold()
    for event in log:
        fold.add(event)
    frame = {**fold.frame(), "mass": np.ones((2, 3, 4), np.float32)}
    drawing = view("page_map").draw()
    assert isinstance(drawing, CanvasDrawing)
    drawing.show(frame, 0.1)
    page, seen = open_page(browser, static_html("page_map", [drawing._state["frame"]], [0.1]))
    assert page.get_by_text("Attention mass").is_visible()
    page.get_by_label("Export and settings").click()
    assert page.locator(".pw-list select").first.locator("option").count() == 3
    assert page.locator(".pw-list select").last.locator("option").count() == 4
    assert seen.errors == []
