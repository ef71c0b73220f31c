"""Hogwild's two pictures of one cache agree: what its workers share stands in the cache view as
shared pages in their owners' hues, and both views say what sharing saved, with units."""

import re

import pytest

from tests.widgets.browser import move, open_page
from widgets.export.replay import static_view
from widgets.view import view
from workbench.catalogue import study

pytestmark = pytest.mark.ui
SMALL = {"workers": 2, "layout": "combined", "critical": 32}
CELLS = ".pw-cells canvas"


@pytest.fixture(scope="module")
def log():
    chosen = study("hogwild")
    return chosen.run_config()(chosen.configured(SMALL))


def test_shared_blocks_are_pages_of_several_owners_and_both_views_say_what_that_saved(browser, log):
    page, seen = open_page(browser, static_view(view("threads"), log))
    threads = page.locator(".pw-figures").inner_text()
    saved = re.search(r"([\d,]+)\s*tokens saved by sharing", threads)
    assert saved and int(saved[1].replace(",", "")) > 0
    page, seen = open_page(browser, static_view(view("page_map"), log))
    cache = page.locator(".pw-figures").inner_text()
    most = re.search(r"saved by sharing, ([\d.]+) [KM]iB at most", cache)
    assert most and float(most[1]) > 0
    # While they think, the prompt's page is of all of them and each worker's own of that worker.
    page.evaluate(
        "t => document.dispatchEvent(new CustomEvent('workbench-cursor', {detail: t}))",
        log.duration * 0.8,
    )
    page.wait_for_timeout(120)
    told = set()
    for x in range(12, 480, 24):
        move(page, CELLS, x, 12)
        told.add(page.locator(".pw-tip").inner_text())
    words = " ".join(told)
    assert "shared by" in words and "alice" in words and "bob" in words
    assert seen.errors == []
