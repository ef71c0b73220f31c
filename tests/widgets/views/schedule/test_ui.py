"""The schedule in a real browser."""

import pytest

from engine.core.events import Level, Mark, Move, Span
from tests.engine.core.chrome.traced import waits, written
from tests.widgets.browser import colours, move, open_page, settle
from tests.widgets.views.schedule.made import log, pipeline, span
from widgets.canvas.packing import pack
from widgets.export.replay import static_html, static_view
from widgets.view import view
from workbench.traces.read import open_log

pytestmark = pytest.mark.ui
CANVAS = ".pw-surface canvas"
PIXELS = "(s) => document.querySelector(s).toDataURL().length"
ATTACK = "<img src=x onerror=alert(1)>"


def shown(browser, made, **how):
    return open_page(browser, static_view(view("schedule"), made, bar=False, **how))


@pytest.mark.parametrize("dark", [False, True])
def test_it_draws_and_asks_for_nothing_outside(browser, dark):
    page, seen = shown(browser, pipeline(4, 8, memory=True, memory_limit=20.0), is_dark=dark)
    assert colours(page, CANVAS) > 20
    figures = page.locator(".pw-figures").inner_text()
    assert "makespan" in figures and "idle of total" in figures and "NaN" not in figures
    assert seen.requests == [] and seen.errors == []


def test_the_pointer_says_the_span_and_lights_its_microbatch_everywhere(browser):
    page, seen = shown(browser, pipeline(2, 2))
    chosen = []
    page.expose_function("heard", lambda owner: chosen.append(owner))
    page.evaluate("document.addEventListener('workbench-chosen', (e) => heard(e.detail))")
    box = page.locator(CANVAS).bounding_box()
    move(page, CANVAS, 96 + (box["width"] - 104) * 0.5 / 6, 20)
    page.wait_for_timeout(100)
    words = page.locator(".pw-tip").inner_text()
    assert "F, mb 0" in words and "rank 0: 1 s" in words
    assert chosen[-1] == "mb 0"
    move(page, CANVAS, 96 + (box["width"] - 104) * 2.5 / 6, 20)  # waits for the other rank
    assert "rank 0: idle for 1 s" in page.locator(".pw-tip").inner_text()
    assert seen.errors == []
    page.context.close()


def test_messages_lie_in_a_strip_under_the_ranks_that_they_are_between(browser):
    made = log(
        *pipeline(2, 2).of(Span), Move(3.0, "rank 0", "rank 1", 2.0**20, 1.0, "mb=0"),
        lanes=["rank 0", "rank 1"],
    )  # fmt: skip
    page, seen = shown(browser, made)
    assert "message sent" in page.locator(".pw-legend").inner_text()
    box, words = page.locator(CANVAS).bounding_box(), {}
    for y in range(4, 100, 2):
        for second in (2.0, 4.0):
            move(page, CANVAS, 96 + (box["width"] - 104) * second / 6, y)
            said = page.locator(".pw-tip").inner_text()
            if "message" in said:
                words.setdefault((said, second), []).append(y)
    ((said, second), places), *more = words.items()
    assert more == [] and second == 2.0 and seen.errors == []
    assert "message, mb 0" in said and "from rank 0 to rank 1: 1 MiB" in said
    assert max(places) - min(places) > 20  # under both


@pytest.mark.parametrize("wide", [1, 400])  # seconds: spans, and shares of them
def test_kinds_beyond_the_hues_have_one_again_with_a_mark(browser, wide):
    ops = [span("die", f"op {part % 10}", part, part + 1, mb=0) for part in range(10 * wide)]
    page, seen = shown(browser, log(*ops, lanes=["die"]))
    looks = page.locator(".pw-legend canvas").evaluate_all("all => all.map((c) => c.toDataURL())")
    assert len(looks) == len(set(looks)) == 11  # ten kinds, and idle
    assert seen.errors == []


def test_a_step_of_many_operations_opens_where_they_can_be_read_and_all_of_it_is_one_press_away(
    browser,
):
    ops = [
        span(
            lane, f"op {part % 3}", 9 + (part + late) * 1e-3, 9 + (part + late + 1) * 1e-3, mb=late
        )
        for part in range(200)
        for late, lane in enumerate(("cores", "bus"))
    ]
    page, seen = shown(browser, log(*ops, lanes=["cores", "bus"], lanes_of="step"))
    said = page.locator(".pw-said")
    assert "where most goes on side by side" in said.inner_text()
    page.get_by_role("button", name="Show all").click()
    settle(page)
    assert "shares of each lane's time" in said.inner_text()
    assert seen.errors == []


def test_a_measured_span_says_how_far_from_its_modelled_one_it_is(browser):
    made = log(
        span("rank 0", "F", 0.0, 1.2, mb=0), span("rank 0", "F", 1.2, 2.0, mb=1),
        span("rank 0", "F", 0.0, 1.0, mb=0, grade="modelled"),
        span("rank 0", "F", 1.0, 2.0, mb=1, grade="modelled"),
    )  # fmt: skip
    page, seen = shown(browser, made)
    box = page.locator(CANVAS).bounding_box()
    move(page, CANVAS, 96 + (box["width"] - 104) * 0.3, 10)
    page.wait_for_timeout(100)
    assert "modelled 1 s: took 20 % more" in page.locator(".pw-tip").inner_text()
    words = set()
    for y in range(14, 60, 3):  # under it, hatched
        move(page, CANVAS, 96 + (box["width"] - 104) * 0.3, y)
        page.wait_for_timeout(30)
        words.add(page.locator(".pw-tip").inner_text().split("rank")[0].strip())
    assert "F, mb 0 (modelled)" in words
    assert "modelled makespan" in page.locator(".pw-figures").inner_text()
    assert "modelled" in page.locator(".pw-legend").inner_text() and seen.errors == []


def test_the_critical_path_can_be_shown(browser):
    page, seen = shown(browser, pipeline(4, 4))
    before = page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()")
    page.get_by_text("Critical path").click()
    settle(page)
    assert page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()") != before
    assert "critical path: " in page.locator(".pw-said").inner_text()
    assert seen.errors == []


def test_spans_are_found_by_name_and_moments_are_marked(browser):
    page, seen = shown(browser, pipeline(4, 8))
    sought = []
    page.expose_function("heard", lambda time: sought.append(time))
    page.evaluate("document.addEventListener('workbench-scrub', (e) => heard(e.detail))")
    page.locator(CANVAS).focus()
    before = page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()")
    page.keyboard.press("/")
    page.keyboard.type("B mb 3")
    assert page.locator(".pw-found").inner_text() == "4 here"  # one on each rank
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    settle(page)
    assert page.locator(".pw-found").inner_text() == "2 of 4"
    assert page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()") != before
    page.get_by_label("Find spans and lanes by name").fill("nothing of the kind")
    assert page.locator(".pw-found").inner_text() == "0 here"
    page.keyboard.press("Escape")
    settle(page)
    assert not page.get_by_label("Find spans and lanes by name").is_visible()
    plain = page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()")
    page.keyboard.press("m")
    settle(page)
    assert page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()") != plain
    page.keyboard.press("m")
    settle(page)
    assert page.evaluate(f"document.querySelector('{CANVAS}').toDataURL()") == plain
    assert seen.errors == []


def test_the_height_follows_a_drag_and_the_keys_and_is_as_high_as_its_lanes_before(browser):
    page, _ = shown(browser, pipeline(4, 4))
    height = "document.querySelector('.pw').clientHeight"
    usual = page.evaluate(height)
    assert usual < 400  # four lanes need no more
    grip = page.locator(".pw-grip")
    box = grip.bounding_box()
    page.mouse.move(box["x"] + 50, box["y"] + 4)
    page.mouse.down()
    page.mouse.move(box["x"] + 50, box["y"] + 84, steps=4)
    page.mouse.up()
    assert page.evaluate(height) == usual + 80
    grip.focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate(height) == usual + 56
    assert grip.get_attribute("aria-valuenow") == str(usual + 56)
    page.keyboard.press("Home")
    assert page.evaluate(height) == usual


def test_an_empty_view_says_what_to_do(browser):
    frame = pack(view("schedule").draw().reduce(view("schedule").fold().frame(), {}))
    page, seen = open_page(browser, static_html("schedule", [frame], [0.0]))
    assert "Start a run" in page.locator(".pw-empty").text_content() and seen.errors == []


def test_text_of_a_run_stays_text(browser):
    made = log(
        span(ATTACK, ATTACK, 0, 1, mb=ATTACK, other=ATTACK),
        Level(0.5, ATTACK, f"memory/{ATTACK}", 3.0),
    )
    page, seen = shown(browser, made)
    for x, y in ((20, 20), (300, 20), (600, 110)):
        move(page, CANVAS, x, y)
    assert page.locator(".pw img").count() == 0 and seen.errors == [] and seen.requests == []


def test_the_plan_can_be_copied_and_what_was_found_of_it_is_said(browser):
    marks = [Mark(0.0, "plan", "memory limit", ATTACK), Mark(0.0, "plan", "memory limit", "more")]
    made = log(*marks, *pipeline(2, 2).of(Span), plan="0F0 0B0\n1F0 1B0")
    page, seen = shown(browser, made)
    assert f"{ATTACK} (and 1 more)" in page.locator(".pw-tools").inner_text()
    page.evaluate("document.addEventListener('copy', () => { window.took = `${getSelection()}` })")
    page.get_by_text("Copy plan").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("window.took") == "0F0 0B0; 1F0 1B0"
    assert seen.errors == []
    page, _ = shown(browser, pipeline(2, 2))
    assert not page.get_by_text("Copy plan").is_visible()


def dragged(page, start: tuple[float, float], stop: tuple[float, float]) -> None:
    """A drag over the canvas, from and to pixels of it."""
    box = page.locator(CANVAS).bounding_box()
    page.mouse.move(box["x"] + start[0], box["y"] + start[1])
    page.mouse.down()
    page.mouse.move(box["x"] + stop[0], box["y"] + stop[1], steps=3)
    page.mouse.up()
    settle(page)


def test_a_range_is_counted_spans_too_short_are_shares_and_the_minimap_zooms(browser):
    steps = [span(lane, "FB"[i % 2], i, i + 1) for i in range(400) for lane in ("a", "b")]
    page, seen = shown(browser, log(*steps))
    wide = page.locator(CANVAS).bounding_box()["width"] - 104

    def at(second):  # a place on the axis
        return 96 + wide * second / 400

    assert "shares of each lane's time" in page.locator(".pw-said").inner_text()
    move(page, CANVAS, at(200), 40)
    words = page.locator(".pw-tip").inner_text()
    assert "F: " in words and "B: " in words and "%" in words
    page.get_by_role("button", name="Select").click()
    dragged(page, (at(100), 34), (at(200), 36))
    rows = page.locator(".pw-range tbody tr").all_inner_texts()
    counted = {row.split()[0]: row.split() for row in rows}
    assert set(counted) == {"F", "B"}
    for row in counted.values():
        assert 49 <= int(row[1]) <= 52 and row[-2:] == ["1", "s"]
    page.keyboard.press("Escape")
    page.locator(".pw-range").wait_for(state="hidden")
    dragged(page, (at(100), 8), (at(110), 8))  # in the minimap
    assert "shares" not in page.locator(".pw-said").inner_text()
    assert page.get_by_role("button", name="Show all").is_visible()
    assert seen.errors == []


def test_a_trace_says_what_its_gaps_wait_for_and_points_at_launches(browser, tmp_path):
    page, seen = shown(browser, open_log(written(tmp_path, waits())))
    legend = page.locator(".pw-legend").inner_text()
    assert "waits for its launch" in legend and "waits for data" in legend
    assert "of the gaps in streams" in page.locator(".pw-card, body").first.inner_text()
    wide = page.locator(CANVAS).bounding_box()["width"] - 104

    def words(micros):
        move(page, CANVAS, 96 + wide * micros / 140, 16)
        return page.locator(".pw-tip").inner_text()

    assert "waits for its launch for 10 µs of it" in words(25)
    assert "waits for data" in words(60)
    assert "launched 10 µs before, by thread 9" in words(45)
    bare = page.evaluate(PIXELS, CANVAS)
    page.get_by_role("button", name="Launches").click()
    page.mouse.move(1, 1)
    settle(page)
    assert page.evaluate(PIXELS, CANVAS) != bare
    assert seen.errors == []
