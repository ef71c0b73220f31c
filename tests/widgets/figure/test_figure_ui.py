"""A Bokeh figure in a browser: it draws, its hover answers, and text of a run stays text."""

import numpy as np
import pytest
from bokeh.embed import file_html
from bokeh.resources import INLINE

from tests.widgets.chart.charting import ATTACK
from widgets.chart.picture import Limit
from widgets.figure import Panel, Series, figure

pytestmark = pytest.mark.ui


def test_it_draws_and_answers_the_pointer_with_text_alone(browser):
    x = np.array([1.0, 2.0, 3.0])
    series = Series(ATTACK, x, x, x - 0.5, x + 0.5)
    limits = (Limit(2.0, ATTACK, True), Limit(2.0, ATTACK))
    made = figure(Panel(ATTACK, (series,), ATTACK, "wait (s)", limits=limits))
    page, faults = browser.new_page(), []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    page.set_content(file_html(made, INLINE))
    page.wait_for_selector("canvas")
    page.wait_for_function("Bokeh.documents[0]?.is_idle")
    box = page.locator(".bk-Figure").bounding_box()
    for step in range(0, int(box["width"]), 12):  # some point of the line lies under one of them
        page.mouse.move(box["x"] + step, box["y"] + box["height"] * (1 - step / box["width"]))
        if page.locator(".bk-tooltip-row-value").count():
            break
    said = page.locator(".bk-tooltip-row-label, .bk-tooltip-row-value").all_inner_texts()
    assert ATTACK in said and "wait (s):" in said
    assert page.locator("img").count() == 0 and faults == []
    page.close()
