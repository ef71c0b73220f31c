"""The committed notebooks, run headless as CI would, small: all cells, no error, a picture each."""

import base64
import re
from pathlib import Path

import pytest

from workbench.notebook.run_many import found, run_all

SMALL = {
    "live": False,
    "requests": 8,
    "tokens": 512,
    "length": 1 << 16,
    "budget": 12,
    "steps": 32,
}
STILL = re.compile(r'src="data:image/png;base64,([A-Za-z0-9+/=]{1000,})"')
BOOKS = found([Path(__file__).parents[2] / "notebooks"])


@pytest.fixture(scope="module")
def results(tmp_path_factory, browser):
    """Every notebook run once, two side by side."""
    folder = tmp_path_factory.mktemp("report")
    done = run_all(BOOKS, SMALL, jobs=2, timeout=300, report=folder)
    return {result.path: result for result in done}


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_runs_and_shows_something(results, book):
    result = results[book]
    assert result.error == ""
    page = result.page.read_text()
    stills = STILL.findall(page)
    assert stills and base64.b64decode(stills[0]).startswith(b"\x89PNG")
    assert 'src="http' not in page


def test_every_family_that_is_built_has_a_notebook(root):
    from workbench.catalogue import catalogue

    families = {entry.family for entry in catalogue() if entry.built}
    assert {book.stem.split("_", 1)[1] for book in BOOKS} >= families
