"""The page's theme is what its browser says: the system's, or what a person pressed; its address is
what its knobs say."""

import gc
import weakref

import panel_material_ui as pmui
import pytest

from engine.core.config import update
from engine.training.step_time.described import TrainingRun
from workbench.pages.frame.addresses import config_of, query_of
from workbench.pages.frame.frame import system_scheme
from workbench.pages.frame.shell import Shell, prose


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


def test_an_address_carries_the_fields_of_an_architecture_through_a_turned_knob():
    start = TrainingRun()
    fields = '{"num_hidden_layers": 24, "hidden_size": 1024}'
    opened = config_of(start, {"model": "gpt2", "architecture": fields})
    turned = update(opened, {"cluster.devices": 16})
    query = query_of(start, turned)
    assert query["cluster.devices"] == "16"
    assert config_of(start, query) == turned and turned.architecture == opened.architecture != {}


def test_what_stands_in_backticks_is_code_and_the_rest_stays_text():
    assert prose("<b> `a<b` c") == "&lt;b&gt; <code>a&lt;b</code> c"


def test_a_page_that_has_gone_is_held_by_nothing():
    gone = weakref.ref(Shell("One", "one").page)
    gc.collect()
    assert gone() is None
