"""The page's theme: the system's until a person presses the switch."""

import panel_material_ui as pmui
import pytest

from workbench.pages_frame import system_scheme


@pytest.fixture
def page(monkeypatch):
    monkeypatch.setattr("panel.state.__class__.loaded", property(lambda _: True))
    return pmui.Page()


def test_a_page_follows_the_system_and_not_a_late_echo(page):
    scheme = system_scheme(page, asked=False)
    scheme.dark = True
    assert page.dark_theme
    scheme.dark = False
    page.dark_theme = True  # what the browser says of the time before
    assert not page.dark_theme and not scheme.dark and scheme.chosen == ""


def test_what_a_person_presses_is_kept(page):
    scheme = system_scheme(page, asked=False)
    scheme.presses += 1
    page.dark_theme = True
    assert scheme.dark and scheme.chosen == "dark"
    scheme.presses += 1
    page.dark_theme = False
    assert not scheme.dark and scheme.chosen == "light"
