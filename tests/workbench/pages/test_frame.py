"""The page's theme is what its browser says: the system's, or what a person pressed."""

import panel_material_ui as pmui
import pytest

from workbench.pages.frame.frame import system_scheme


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr("panel.state.__class__.loaded", property(lambda _: True))
    return pmui.Page()


def test_a_page_follows_what_its_browser_says_and_not_a_late_echo(page):
    scheme = system_scheme(page, asked=False)
    scheme.dark = True
    assert page.dark_theme
    scheme.dark = False
    page.dark_theme = True  # what the browser's page says of the time before
    assert not page.dark_theme and not scheme.dark
