"""How each view is to be read: words for every one, and the sheet that its menu opens."""

import pytest

from tests.widgets.browser import open_page, settle
from tests.widgets.made_runs import serving
from tests.widgets.views.schedule.made import pipeline
from widgets.export.replay import static_view
from widgets.view import view, views

COPIED = """() => [...document.querySelectorAll(".pw-explain canvas")].every((canvas) => canvas
  .getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte))"""


@pytest.mark.parametrize("name", sorted(views()))
def test_every_view_says_what_it_shows_and_how_it_is_read(name):
    rows = view(name).explain
    labels = [label for label, _ in rows]
    assert labels[0] == "What it shows" and labels[-1] == "Try" and len(set(labels)) == len(labels)
    assert {"Colours", "Matrix"} & set(labels)  # what shades mean
    assert all(words.endswith(".") and len(words) <= 400 for _, words in rows)
    assert view(name).draw().about["explain"] == [list(row) for row in rows]


@pytest.mark.ui
@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("latency", lambda: serving(requests=6)),
        ("schedule", lambda: pipeline(2, 4, clock="virtual")),
    ],
)
def test_the_menu_explains_a_view_by_keys_alone(browser, name, made):
    page, seen = open_page(browser, static_view(view(name), made()))
    menu = page.get_by_label("Export and settings")
    menu.press("Enter")
    page.get_by_role("button", name="How to read this view").press("Enter")
    title = page.locator(".pw-title").first.evaluate("e => e.firstChild.textContent")
    sheet = page.get_by_role("dialog", name=title)
    sheet.wait_for()
    for label, words in view(name).explain:
        assert sheet.get_by_text(label, exact=True).count() == 1
        assert sheet.get_by_text(words, exact=True).count() == 1
    assert page.evaluate(COPIED)  # the legend's marks, as the view draws them
    assert sheet.get_by_text("This run is modelled").count() == (name == "schedule")
    page.keyboard.press("Escape")
    sheet.wait_for(state="detached")
    settle(page)
    assert menu.evaluate("e => e === document.activeElement")
    assert seen.errors == []
