"""The roofline page in a real browser: kernels become points, a knob moves them."""

import pytest

from tests.ui.keys import all_by_keys

pytestmark = pytest.mark.ui


def test_a_knob_moves_the_points_and_stands_in_the_address(visit, tmp_path):
    seen = visit()
    page = seen.open("/roofline?operator=norm&operator.rows=64&seconds=0.02")
    page.get_by_text("What bounds this work").wait_for()
    page.get_by_text("achieved / limit").wait_for()  # compiles and measures once
    first = seen.settled()
    page.get_by_role("button", name="A norm that stays in cache").click()
    page.wait_for_url("**inputs=warm**")
    seen.changed(first)
    seen.settled()
    all_by_keys(page)
    page.screenshot(path=tmp_path / "roofline.png")
    assert seen.outside == [] and seen.faults == []


def test_a_device_nobody_described_is_said(visit):
    page = visit().open("/roofline?beside=x100")
    page.get_by_text("no data sheet").first.wait_for()
