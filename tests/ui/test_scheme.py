"""The app's colours follow the system's until a person chooses."""

import pytest

pytestmark = pytest.mark.ui


def shaded(page, dark):
    """Wait until the page is dark (or light)."""
    from playwright.sync_api import expect

    wanted = "rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)"
    main = page.locator(".main").first
    expect(main).to_have_css("background-color", wanted)


def test_a_page_is_dark_where_the_system_is_until_a_person_says_otherwise(visit):
    seen = visit(new=True)
    page = seen.page
    page.emulate_media(color_scheme="dark")
    seen.open("/catalogue")
    shaded(page, dark=True)
    page.emulate_media(color_scheme="light")
    shaded(page, dark=False)
    page.emulate_media(color_scheme="dark")
    shaded(page, dark=True)
    page.get_by_label("Toggle theme").click()
    shaded(page, dark=False)
    seen.open("/catalogue")
    page.get_by_text("157 systems").wait_for()
    page.wait_for_timeout(500)
    shaded(page, dark=False)
    assert seen.faults == []
