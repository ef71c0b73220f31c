"""Pictures saved from canvas views: PNG, and SVG with the same shapes and text, escaped."""

import xml.etree.ElementTree as tree

import pytest

from tests.bench.page_map_fps import filled
from tests.widgets.browser import open_page
from tests.widgets.made_runs import serving
from tests.widgets.views.schedule.made import log, pipeline, span
from widgets.export.replay import static_view
from widgets.view import view

pytestmark = pytest.mark.ui
SVG = "{http://www.w3.org/2000/svg}"
ATTACK = '<script>alert(1)</script>"&\x07'


def saved(browser, name, made, kind, dark=False):
    """The bytes that the menu's `kind` of picture saves, and the file's name."""
    page, seen = open_page(browser, static_view(view(name), made, is_dark=dark, bar=False))
    page.get_by_label("Export and settings").click()
    with page.expect_download() as download:
        page.get_by_text(f"({kind})").click()
    with open(download.value.path(), "rb") as file:
        data = file.read()
    assert seen.errors == [] and seen.requests == []
    return data, download.value.suggested_filename


def shapes(root, tag):
    return list(root.iter(SVG + tag))


def test_a_picture_can_be_saved_as_png(browser):
    data, name = saved(browser, "page_map", serving(1, requests=8), "PNG")
    assert name == "page-map.png" and data[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    "name", ["page_map", "request_lanes", "token_river", "schedule", "levels", "latency"]
)
@pytest.mark.parametrize("dark", [False, True])
def test_a_drawing_is_saved_as_svg_that_needs_nothing_else(browser, name, dark):
    made = serving(1, pages=128, requests=12)
    data, file = saved(browser, name, made, "SVG", dark)
    root = tree.fromstring(data)
    assert file == f"{name.replace('_', '-')}.svg" and root.tag == f"{SVG}svg"
    texts = ["".join(node.itertext()) for node in shapes(root, "text")]
    assert view(name).question in texts
    assert len(shapes(root, "path")) > 4  # one for each run of shapes of one colour
    links = [v for node in root.iter() for k, v in node.attrib.items() if k.endswith("href")]
    assert all(link.startswith("data:image/png;base64,") for link in links)
    assert b"NaN" not in data and b"undefined" not in data


def test_every_span_and_its_name_is_in_the_drawing(browser):
    root = tree.fromstring(saved(browser, "schedule", pipeline(2, 3), "SVG")[0])
    texts = ["".join(node.itertext()) for node in shapes(root, "text")]
    for name in ("rank 0", "rank 1", "F 0", "F 2", "B 1", "makespan"):
        assert name in texts
    boxes = sum(node.attrib["d"].count("M") for node in shapes(root, "path") if "d" in node.attrib)
    assert boxes >= 2 * 3 * 2


def test_text_of_a_run_is_escaped_in_a_drawing(browser):
    made = log(span(ATTACK, ATTACK, 0, 1))
    data, _ = saved(browser, "schedule", made, "SVG")
    root = tree.fromstring(data)
    assert shapes(root, "script") == [] and b"<script" not in data


def test_twenty_thousand_cells_make_a_drawing_of_reasonable_size(browser):
    data, _ = saved(browser, "page_map", filled(20_000)[1], "SVG")
    cells = [
        node for node in shapes(tree.fromstring(data), "path") if "shape-rendering" in node.attrib
    ]
    assert sum(node.attrib["d"].count("M") for node in cells) > 20_000  # boxes, not an image
    assert len(data) < 4 * 2**20
