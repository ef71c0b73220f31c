"""The thread view in a real browser."""

import json
from pathlib import Path

import pytest

from engine.core.events import Branch, Level, Mark, Page, Token
from tests.widgets.browser import colours, move, open_page, pixel, settle, zoom
from tests.widgets.views.threads.made import family, log, looked, workers
from widgets.canvas.drawing import EXPORT, settings, source
from widgets.canvas.packing import pack
from widgets.export.replay import static_html, static_view
from widgets.view import view
from widgets.views.threads import detail

pytestmark = pytest.mark.ui
LANES, MATRIX = ".pw-lanes canvas", ".pw-sight canvas"
ATTACK = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LEFT = 112  # where the lanes begin


def shown(browser, made, width: int = 1280, **how):
    return open_page(browser, static_view(view("threads"), made, bar=False, **how), width)


def cursor(page, time: float) -> None:
    page.evaluate(
        "(at) => document.dispatchEvent(new CustomEvent('workbench-cursor', {detail: at}))", time
    )
    settle(page)


def image(page, selector: str) -> str:
    return page.evaluate("(s) => document.querySelector(s).toDataURL()", selector)


def press(page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    settle(page)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 1920])
def test_it_draws_lanes_and_sight_and_asks_for_nothing_outside(browser, dark, width):
    page, seen = shown(browser, family(), width, is_dark=dark)
    assert colours(page, LANES) > 30 and colours(page, MATRIX) > 10
    words = page.locator(".pw-figures").inner_text()
    assert "on the critical path" in words and "(13 + 7) × 4 · right" in words
    assert seen.requests == [] and seen.errors == []


def test_the_axis_counts_time_steps_or_tokens(browser):
    page, seen = shown(browser, family())
    pictures = [image(page, LANES)]
    for name in ("Steps", "Tokens", "Time"):
        press(page, name)
        pictures.append(image(page, LANES))
    assert len(set(pictures)) == 3 and pictures[0] == pictures[3]
    assert seen.errors == []


@pytest.mark.parametrize("axis", ["Time", "Steps", "Tokens"])
def test_a_click_on_the_axis_seeks_to_that_moment(browser, axis):
    page, seen = shown(browser, family())
    page.evaluate(
        "document.addEventListener('workbench-cursor', (e) => { window.sought = e.detail; })"
    )
    press(page, axis)
    box = page.locator(LANES).bounding_box()
    foot = page.evaluate(
        "() => { const c = document.querySelector('.pw-surface canvas'); return c.clientHeight; }"
    )
    middle = LEFT + (box["width"] - LEFT - 8) / 2
    page.mouse.click(box["x"] + middle, box["y"] + foot - (26 + 22 * 3 + 10) - 12)
    settle(page)
    assert page.evaluate("window.sought") == pytest.approx(0.85, abs=0.02)
    assert seen.errors == []


def test_the_pointer_lights_a_thread_and_tells_its_token_and_the_judges_reason(browser):
    page, seen = shown(browser, family())
    page.evaluate("window.lit = []")
    page.evaluate("document.addEventListener('workbench-chosen', (e) => lit.push(e.detail))")
    box = page.locator(LANES).bounding_box()
    pitch = 38
    move(page, LANES, LEFT + (box["width"] - LEFT - 8) * 0.1, 20 + pitch / 2)
    words = page.locator(".pw-tip").inner_text()
    assert words.startswith("main\n") and "probability" in words
    move(page, LANES, LEFT + (box["width"] - LEFT - 8) * 0.7, 20 + pitch * 5.5)
    words = page.locator(".pw-tip").inner_text()
    assert "pruned at" in words and "same answer as its brother (0.93)" in words
    assert page.evaluate("lit") == ["main", "main.5"]
    assert seen.errors == []


def test_a_cell_of_the_matrix_lights_the_owner_of_its_block_and_says_the_offset(browser):
    page, seen = shown(browser, workers(3, 64))
    page.evaluate(
        "document.addEventListener('workbench-chosen', (e) => { window.lit = e.detail; })"
    )
    # The columns are the prompt, then one for each worker.
    move(page, MATRIX, 14 + 44 * 2.5, 20 + 38 / 2)
    words = page.locator(".pw-tip").inner_text()
    assert words.startswith("w0\n") and "saw w1 from position" in words  # it is over by now
    assert page.evaluate("window.lit") == "w1"
    move(page, MATRIX, 14 + 20, 20 + 38 / 2)
    assert "saw prompt from position 0" in page.locator(".pw-tip").inner_text()
    assert seen.errors == []


def test_the_matrix_is_as_of_the_cursor(browser):
    page, _ = shown(browser, family(), is_dark=False)
    at = (14 + 44 * 1.2, 20 + 10)  # whether main sees the block of its first child
    cursor(page, 0.5)
    assert pixel(page, MATRIX, *at) == [0, 0, 0] or min(pixel(page, MATRIX, *at)) > 250
    cursor(page, 0.8)
    seen_now = pixel(page, MATRIX, *at)
    assert 0 < min(seen_now) < 200
    cursor(page, 1.7)  # main is over: what it saw last, paler
    assert min(seen_now) < min(pixel(page, MATRIX, *at)) < 250


def test_a_thread_that_is_over_saw_what_its_pages_held_though_they_were_given_back(browser):
    made = log(
        Branch(0.0, "r0"), Page(0.1, 7, "r0", "take"), Branch(0.2, "r0.1", "r0"),
        Page(0.2, 7, "r0.1", "share"), Token(0.5, "r0.1", "x"), Page(0.8, 7, "r0.1", "drop"),
        Branch(0.9, "r0.1", state="finished"), Token(1.0, "r0", "y"), page_size=16,
    )  # fmt: skip
    page, _ = shown(browser, made)
    move(page, MATRIX, 14 + 20, 20 + 1.5 * 38)
    assert "saw r0 from position 0" in page.locator(".pw-tip").inner_text()


def test_close_up_tokens_become_text(browser):
    page, seen = shown(browser, family())
    assert "zoom in" in page.locator(".pw-said").inner_text()
    press(page, "Tokens")
    move(page, LANES, 300, 40)
    zoom(page, 4)
    assert "zoom in" not in page.locator(".pw-said").inner_text()
    press(page, "Show all")
    assert "zoom in" in page.locator(".pw-said").inner_text()
    assert seen.errors == []


def test_pictures_can_be_saved_as_png_and_svg(browser):
    page, seen = shown(browser, family(clock="virtual"))
    for item, kind in (("Save picture (PNG)", "png"), ("Save drawing (SVG)", "svg")):
        page.locator(".pw-menu > button").click()
        with page.expect_download() as found:
            page.get_by_text(item).click()
        assert found.value.suggested_filename == f"threads.{kind}"
        data = Path(found.value.path()).read_bytes()
        assert len(data) > 5000
    assert b"blocks seen" in data and b"main.4" in data and b"pruned: the judge" in data
    assert seen.errors == []


@pytest.mark.parametrize("axis", ["Time", "Steps", "Tokens"])
def test_many_tokens_are_drawn_as_columns_of_the_same_colours(browser, monkeypatch, axis):
    """The lane of the only thread that is unsure is paler, one by one and in columns."""
    tokens = [Token(0.1 * n, w, "x", -9.0 * (w == "b")) for n in range(1, 900) for w in "ab"]
    fold = view("threads").fold()
    for event in log(*tokens):
        fold.add(event)
    found = []
    for most in (detail.MOST, 400):
        monkeypatch.setattr(detail, "MOST", most)
        frame = detail.reduce(fold.frame(), {})
        assert ("token_count" in frame) == (most == 400)
        html = static_html("threads", [pack(frame)], [0.0], duration=90.0, is_dark=False, bar=False)
        page, seen = open_page(browser, html)
        press(page, axis)
        assert ("tokens in" in page.locator(".pw-said").inner_text()) == (most == 400)
        found.append([pixel(page, LANES, 500, 20 + 38 * lane + 17) for lane in (0, 1)])
        assert seen.errors == []
    for lane in (0, 1):
        assert max(abs(a - b) for a, b in zip(found[0][lane], found[1][lane], strict=True)) < 30
    assert sum(found[1][0]) + 60 < sum(found[1][1])


def test_text_of_a_run_stays_text(browser):
    made = log(
        Branch(0.0, ATTACK),
        Branch(0.1, "b", ATTACK),
        Level(0.1, "b", f"sees/{ATTACK}", 3.0),
        Token(0.2, ATTACK, ATTACK, -0.1),
        Token(0.3, "b", ATTACK, -0.1),
        Mark(0.3, "b", "said", ATTACK),
        Mark(0.3, "b", "answer", ATTACK),
        Branch(0.3, "b", ATTACK, "pruned", ATTACK),
        Token(0.4, ATTACK, "x", -0.1),
    )
    page, seen = shown(browser, made)
    for selector in (LANES, MATRIX):
        for x in (20, 60, LEFT + 200, LEFT + 300, 700):
            for y in (25, 40, 78, 110):
                move(page, selector, x, y)
    assert page.locator(".pw img, .pw script").count() == 0
    assert seen.errors == [] and seen.requests == []


def test_an_empty_view_says_what_to_do(browser):
    made = view("threads")
    frame = pack(made.draw().reduce(made.fold().frame(), {}))
    page, seen = open_page(browser, static_html("threads", [frame], [0.0]))
    assert "Start a run" in page.locator(".pw-empty").text_content() and seen.errors == []


HOST = """
const values = {frame: Uint8Array.from(FRAME), cursor: 9, chosen: "", window: {}, seek: -1,
  command: {}, is_dark: false, reach: 0, options: OPTIONS};
window.said = [];
const model = {get: (n) => values[n], on() {}, off() {}, save_changes() {},
  set(n, v) { values[n] = v; if (n === "command") said.push(v); }};
drawing.render({model, el: document.querySelector("#here")});
"""


def test_commands_of_a_live_run_name_the_pinned_thread(browser):
    fold = view("threads").fold()
    facts = {"commands": ["fork", "kill", "say"]}
    for event in log(Branch(0.0, "a"), Token(1.0, "a", "x"), close=False, **facts):
        fold.add(event)
    frame = pack(view("threads").draw().reduce(fold.frame(), {}))
    script = source("threads").replace(EXPORT, "const drawing =")
    host = HOST.replace("FRAME", str(list(frame))).replace("OPTIONS", json.dumps(settings(400)))
    page, seen = open_page(
        browser, f'<div id="here"></div><script type="module">{script}{host}</script>'
    )
    fork = page.get_by_role("button", name="Fork here")
    assert fork.is_disabled()
    box = page.locator(LANES).bounding_box()
    page.mouse.click(box["x"] + 300, box["y"] + 38)
    settle(page)
    fork.click()
    page.get_by_role("button", name="Kill").click()
    page.get_by_placeholder("say something to it").fill("<b>wait</b>")
    page.get_by_role("button", name="Say").click()
    said = [{k: v for k, v in command.items() if k != "turn"} for command in page.evaluate("said")]
    assert said == [{"fork": "a"}, {"kill": "a"}, {"say": ["a", "<b>wait</b>"]}]
    assert seen.errors == []


@pytest.mark.parametrize("width", [640, 960, 1280, 1920])
def test_a_single_lane_is_seen_whole_however_what_stands_above_it_wraps(browser, width):
    """What is said of the picture comes with it, after the view has said how high it would be."""
    fold = view("threads").fold()
    for event in log(Branch(0.0, "a"), Token(1.0, "a", "x"), close=False):
        fold.add(event)
    frame = pack(view("threads").draw().reduce(fold.frame(), {"static": True}))
    page, _ = open_page(browser, static_html("threads", [frame], [1.0]), width=width)
    lane = 20 + 38 + 24  # below its heading, above the axis
    reading = 26 + 3 * 22 + 10
    assert page.locator(LANES).bounding_box()["height"] >= lane + reading


def test_a_recorded_run_has_no_buttons_that_do_nothing(browser):
    page, _ = shown(browser, log(Branch(0.0, "a"), Token(1.0, "a", "x"), commands=["fork"]))
    assert page.get_by_role("button", name="Fork here").count() == 0


@pytest.mark.parametrize("dark", [False, True])
def test_hovering_a_token_shows_whom_it_attended_to(browser, dark):
    page, seen = shown(browser, looked(), is_dark=dark)
    before = image(page, MATRIX)
    move(page, LANES, 600, 40)
    settle(page)
    assert image(page, MATRIX) != before
    words = page.locator(".pw-tip").inner_text()
    assert "attends to prompt" in words and "%" in words
    move(page, LANES, 600, 300)  # nobody's lane
    settle(page)
    assert image(page, MATRIX) == before
    assert seen.errors == []


def test_arcs_at_the_cursor_say_who_reads_whom(browser):
    page, seen = shown(browser, looked())
    cursor(page, 0.2)
    drawn = image(page, LANES)
    page.get_by_role("button", name="Who reads whom").click()
    settle(page)
    bare = image(page, LANES)
    assert bare != drawn
    page.get_by_role("button", name="Who reads whom").click()
    settle(page)
    assert image(page, LANES) == drawn
    move(page, LANES, 300, 40)
    words = page.locator(".pw-tip").inner_text()
    assert "reads now: w1 (" in words and "%" in words
    assert seen.errors == []
