"""Two runs of one view on one page, as the comparison has them: one time axis, one height."""

import pytest

from tests.widgets.browser import open_page, settle, zoom
from tests.widgets.views.schedule.made import pipeline
from widgets.export.replay import static_view
from widgets.view import view

pytestmark = pytest.mark.ui
CANVAS = ".pw-surface canvas"


@pytest.fixture
def both(browser):
    """A short and a long pipeline, both told to reach as far as the long one."""
    short, long = pipeline(2, 2), pipeline(2, 6)
    reach = f"chosen: '', reach: {long.duration}, "
    pages = [static_view(view("schedule"), made, bar=False) for made in (short, long)]
    told = [page.replace('chosen: "", ', reach) for page in pages]
    page, seen = open_page(
        browser, "".join(text.replace("duration: end }", "}") for text in told), height=900
    )
    yield page
    assert seen.errors == []


def drawn(page):
    return [canvas.evaluate("c => c.toDataURL()") for canvas in page.locator(CANVAS).all()]


def end_of_work(page, place):
    """The rightmost pixel of the first lane that is neither paper nor idle."""
    return (
        page.locator(CANVAS)
        .nth(place)
        .evaluate(
            """c => {
            const { data, width } = c.getContext("2d").getImageData(0, 20, c.width, 1);
            for (let x = width - 20; x > 0; x--) {
                const [r, g, b] = data.slice(4 * x, 4 * x + 3);
                if (Math.max(r, g, b) - Math.min(r, g, b) > 40) return x;
            }
        }"""
        )
    )


def test_the_shorter_run_ends_where_it_ends_on_the_longer_ones_axis(both):
    short, long = (end_of_work(both, place) for place in (0, 1))
    assert (short - 96) / (long - 96) == pytest.approx(6 / 14, abs=0.02)


def test_zooming_one_zooms_the_other_and_showing_all_shows_all_in_both(both):
    whole = drawn(both)
    box = both.locator(CANVAS).first.bounding_box()
    both.mouse.move(box["x"] + 400, box["y"] + 20)
    zoom(both)
    both.mouse.move(2, 2)
    settle(both)
    assert all(now != before for now, before in zip(drawn(both), whole, strict=True))
    both.get_by_text("Show all").last.click()
    both.mouse.move(2, 2)
    settle(both)
    assert drawn(both) == whole


def test_dragging_one_makes_both_as_high(both):
    both.locator(".pw-grip").first.focus()
    both.keyboard.press("Shift+ArrowDown")
    heights = both.evaluate("[...document.querySelectorAll('.pw')].map((n) => n.clientHeight)")
    assert heights[0] == heights[1] > 200
