"""A study where it is taught: in a cell of a notebook, and as a lecture."""

import pytest

from tests.ui.keys import all_by_keys

pytestmark = pytest.mark.ui
STUDY = "slug=flover&executor=modelled&model=llama-2-7b&dtype=float16&pages=600&at=100%25"


def test_a_study_in_a_cell_has_knobs_in_a_row_and_views_in_tabs(visit):
    seen = visit(width=1000, height=860)
    page = seen.open(f"/embed?{STUDY}")
    page.get_by_text("24 of 24").first.wait_for()
    assert page.get_by_role("link", name="Catalogue").count() == 0
    box = page.get_by_label("Batching").bounding_box()
    assert (
        box["y"] < 100 and page.get_by_label("Executor", exact=True).bounding_box()["y"] == box["y"]
    )
    assert page.locator(".pw-body canvas").first.bounding_box()["y"] <= 300
    main = page.locator(".main-content")
    assert main.evaluate("m => m.scrollHeight - m.clientHeight") <= 0  # it fits
    all_by_keys(page)
    page.get_by_role("tab", name="KV cache").click()
    page.get_by_text("Where does every key and value live").wait_for()
    assert seen.faults == []


@pytest.mark.slow
def test_a_lecture_asks_before_it_shows(visit):
    seen = visit(width=1280, height=800)
    page = seen.open(f"/lecture?{STUDY}&workload.count=6")
    page.get_by_text("1 of 10").wait_for()
    assert page.locator(".pw.large").count() == 1
    for place in (2, 3, 4):
        page.get_by_role("button", name="Next").click()
        page.get_by_text(f"{place} of 10").wait_for()
    page.get_by_text("What becomes of its tokens per second?").wait_for()
    page.get_by_role("button", name="Less", exact=True).click()
    page.get_by_text("As you said.").wait_for()
    for place in (5, 6, 7):
        page.get_by_role("button", name="Next").click()
        page.get_by_text(f"{place} of 10").wait_for()
    page.get_by_text("Does it hold?").wait_for()
    page.get_by_role("button", name="It holds").click()
    page.get_by_text("The paper:").wait_for()
    assert seen.faults == []
