"""Charts in a real browser: what is drawn, what the pointer and the keys do, and what they tell."""

import re
import xml.etree.ElementTree as tree

import numpy as np
import pytest

from engine.core.events import Level, Opened
from engine.core.log import Log
from tests.widgets.browser import colours, move, open_page, pixel, settle
from tests.widgets.chart.charting import (
    ATTACK,
    OVER,
    TOLD,
    UNDER,
    columns,
    plot,
    ramp,
    rgb,
    shown,
    waits,
)
from tests.widgets.made_runs import serving
from widgets.canvas.packing import pack
from widgets.export.replay import static_html, static_view
from widgets.theme import HUES
from widgets.view import view

pytestmark = pytest.mark.ui


@pytest.mark.parametrize("name", ["levels", "latency"])
@pytest.mark.parametrize("dark", [False, True])
def test_a_chart_is_drawn_and_asks_for_nothing_outside(browser, name, dark):
    page, seen = open_page(browser, static_view(view(name), serving(1, requests=12), is_dark=dark))
    assert colours(page, "canvas") > 20
    assert page.locator(".pw-title").first.text_content().startswith(view(name).question)
    figures = page.locator(".pw-figures").first
    assert figures.locator(".pw-value").count() == 4 and "NaN" not in figures.inner_text()
    sizes = page.evaluate(
        """() => [...document.querySelectorAll(".pw *")].filter((n) => n.innerText)
            .map((n) => parseFloat(getComputedStyle(n).fontSize))"""
    )
    assert min(sizes) >= 12
    assert page.locator(OVER).get_attribute("aria-label").endswith("0 shows all.")
    assert seen.requests == [] and seen.errors == []


def test_an_empty_chart_says_what_to_do(browser):
    drawing = view("levels").draw()
    frame = drawing.still(view("levels").fold().frame(), 0.0)[0]
    html = static_html("chart", [pack(frame)], [0.0], about=drawing.about)
    page, seen = open_page(browser, html)
    assert "Start a run" in page.locator(".pw-empty").text_content() and seen.errors == []


def test_the_line_stands_where_its_values_are(browser):
    page, _ = shown(browser, "levels", ramp())
    box, left, right = plot(page)
    row = int(box["height"] * 0.5)
    (line,) = {x // 3 for x in columns(page, UNDER, rgb(HUES[0]), row) if x < right - 3}
    # Half of the way up an axis of 10: the line passes there when it rises from 4 to 5 or so.
    at = (line * 3 - left) / (right - left)
    assert 0.3 < at < 0.7


def test_what_is_modelled_is_dashed_and_said_to_be_modelled(browser):
    lengths = []
    for clock in ("wall", "virtual"):
        page, _ = shown(browser, "levels", ramp(clock=clock))
        whole = page.locator(UNDER).evaluate(
            """canvas => {
                const { width, height } = canvas, ctx = canvas.getContext("2d")
                const { data } = ctx.getImageData(0, 0, width, height)
                let n = 0
                for (let i = 0; i < data.length; i += 4)
                    n += data[i] < 40 && data[i + 2] > 150 && data[i + 3] > 200
                return n }"""
        )
        lengths.append(whole)
        assert page.locator(".pw-chip").is_visible() == (clock == "virtual")
    assert lengths[1] < 0.85 * lengths[0]


def test_the_pointer_reads_every_line_at_its_moment(browser):
    page, seen = shown(browser, "levels", ramp())
    box, left, right = plot(page)
    for share, value in ((0.251, "2"), (0.751, "7")):
        move(page, OVER, left + share * (right - left), box["height"] / 2)
        words = page.locator(".pw-tip").inner_text()
        assert f"load: {value}" in words and f"0.{str(share)[2:4]}" in words
    move(page, OVER, 10, 5)
    assert not page.locator(".pw-tip").is_visible() and seen.errors == []


def test_a_click_seeks_and_the_cursor_follows_the_bar_before_the_host_answers(browser):
    page, _ = shown(browser, "levels", ramp())
    box, left, right = plot(page)
    page.evaluate(TOLD, "workbench-cursor")
    page.mouse.click(box["x"] + left + 0.4 * (right - left), box["y"] + 60)
    assert page.evaluate("told")[-1] == pytest.approx(0.4, abs=0.004)
    page.mouse.move(2, 2)
    page.evaluate("document.dispatchEvent(new CustomEvent('workbench-scrub', { detail: 0.8 }))")
    settle(page)
    ink = columns(page, OVER, rgb("#1B1F24"), 60)
    assert np.mean(ink) == pytest.approx(left + 0.8 * (right - left), abs=2)


def test_a_drag_zooms_along_time_and_show_all_shows_all_again(browser):
    page, _ = shown(browser, "levels", ramp())
    box, left, right = plot(page)
    whole = page.locator(UNDER).evaluate("c => c.toDataURL()")
    page.evaluate(TOLD, "workbench-cursor")

    def drag(a, b):
        page.mouse.move(box["x"] + left + a * (right - left), box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + left + b * (right - left), box["y"] + 70, steps=4)
        page.mouse.up()
        settle(page)

    button = page.get_by_text("Show all")
    assert not button.is_visible()
    drag(0.2, 0.4)
    assert button.is_visible() and page.evaluate("told") == []
    move(page, OVER, left + 0.75 * (right - left), 60)
    assert "load: 3" in page.locator(".pw-tip").inner_text()  # at 0.35 s
    button.click()
    page.mouse.move(2, 2)
    settle(page)
    assert not button.is_visible()
    assert page.locator(UNDER).evaluate("c => c.toDataURL()") == whole
    page.locator(OVER).focus()
    page.keyboard.press("+")
    settle(page)
    assert button.is_visible()
    page.keyboard.press("0")
    settle(page)
    assert page.locator(UNDER).evaluate("c => c.toDataURL()") == whole


def test_the_pointer_chooses_the_owner_of_a_latency_and_a_click_keeps_it(browser):
    page, seen = shown(browser, "latency", waits())
    page.evaluate(TOLD, "workbench-chosen")
    box = page.locator(OVER).bounding_box()
    for x in range(60, 330, 6):
        move(page, OVER, x, box["height"] * 0.5)
        if page.locator(".pw-tip").is_visible():
            break
    words = page.locator(".pw-tip").inner_text()
    owner = page.evaluate("told")[-1]
    wait = 10 * (int(owner[1:]) + 1)
    assert words.startswith(owner) and f"Time to first token: {wait} ms" in words
    spot = [x, box["height"] * 0.5]
    page.mouse.click(box["x"] + spot[0], box["y"] + spot[1])
    page.mouse.move(2, 2)
    settle(page)
    assert page.evaluate("told")[-1] == owner and seen.errors == []


def drawing(page):
    """The saved SVG: (text, y) of every text."""
    page.get_by_label("Export and settings").click()
    with page.expect_download() as download:
        page.get_by_text("(SVG)").click()
    root = tree.parse(download.value.path()).getroot()
    texts = root.iter("{http://www.w3.org/2000/svg}text")
    return [("".join(node.itertext()), float(node.get("y"))) for node in texts]


def test_an_owner_chosen_elsewhere_is_marked_on_its_curve(browser):
    page, _ = shown(browser, "latency", waits())
    page.evaluate("document.dispatchEvent(new CustomEvent('workbench-chosen', { detail: 'r3' }))")
    settle(page)
    assert "r3  40 ms" in [text for text, _ in drawing(page)]


def test_a_chart_becomes_as_high_as_asked_and_its_labels_stand_apart(browser):
    page, _ = shown(browser, "latency", serving(requests=12))
    page.evaluate("document.querySelector('.pw-grip').focus()")
    for _ in range(4):
        page.keyboard.press("ArrowUp")
    settle(page)
    low = page.evaluate("document.querySelector('.pw').clientHeight")
    heights = [y for text, y in drawing(page) if re.fullmatch(r"p\d+", text)][:3]
    assert low < 250 and np.diff(sorted(heights)).min() > 12
    page.keyboard.press("Escape")
    page.evaluate("document.querySelector('.pw-grip').focus()")
    page.keyboard.press("Home")
    settle(page)
    assert page.evaluate("document.querySelector('.pw').clientHeight") > low + 60


def test_names_of_lines_stand_apart_at_their_ends(browser):
    log = Log([Opened(0.0, {}, facts={})])
    for i in range(4):
        log.emit(Level(0.1, f"rank {i}", "load", 5.0 + 0.01 * i))
    log.emit(Level(1.0, "rank 0", "load", 5.0))
    page, _ = shown(browser, "levels", log)
    heights = [y for text, y in drawing(page) if text.startswith("rank ")]
    assert len(heights) == 4 and np.diff(sorted(heights)).min() > 14


def test_text_of_a_run_stays_text(browser):
    page, seen = shown(browser, "levels", ramp(ATTACK))
    for x in range(100, 1100, 200):
        move(page, OVER, x, 60)
    assert ATTACK.replace("_", " ") in page.locator(".pw-tip").inner_text()
    assert page.locator(".pw img").count() == 0 and seen.errors == [] and seen.requests == []


def test_an_unchanged_picture_is_not_drawn_again_under_a_moving_cursor(browser):
    page, _ = shown(browser, "levels", ramp())
    page.evaluate(
        """() => {
            window.cleared = [0, 0]
            document.querySelectorAll("canvas").forEach((canvas, i) => {
                const ctx = canvas.getContext("2d"), clear = ctx.clearRect
                ctx.clearRect = (...box) => { cleared[i] += 1; clear.apply(ctx, box) } }) }"""
    )
    for time in (0.2, 0.4, 0.6):
        page.evaluate(
            "t => document.dispatchEvent(new CustomEvent('workbench-scrub', { detail: t }))", time
        )
        settle(page)
    under, over = page.evaluate("cleared")
    assert under == 0 and over >= 3
    assert pixel(page, "canvas", 2, 2) == [0, 0, 0]  # nothing there: the frame's own paper shows


def test_runs_beside_one_another_are_zoomed_together(browser):
    reach = 'chosen: "", reach: 2, '
    pages = [static_view(view("levels"), ramp(), bar=False, is_dark=False) for _ in range(2)]
    told = "".join(text.replace('chosen: "", ', reach) for text in pages)
    page, seen = open_page(browser, told, height=1000)
    under = [page.locator(f"canvas >> nth={place}") for place in (0, 2)]
    whole = [canvas.evaluate("c => c.toDataURL()") for canvas in under]
    page.locator(OVER).focus()
    page.keyboard.press("+")
    settle(page)
    now = [canvas.evaluate("c => c.toDataURL()") for canvas in under]
    assert now[0] != whole[0] and now[1] != whole[1] and seen.errors == []
    page.locator(".pw-over").last.click()
    page.mouse.move(2, 2)
    settle(page)
    assert [canvas.evaluate("c => c.toDataURL()") for canvas in under] == whole
