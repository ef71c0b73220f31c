"""The committed notebooks, small: every cell runs without an error, and its report shows a picture.

Cells run in this process; with --full each in a kernel of its own, as `workbench notebooks run`
has it. A browser, which costs two seconds of a processor, draws the pictures of a third of them, of
others at another commit.
"""

import base64
import re
from pathlib import Path

import pytest

from tests.contracts.turn import turn_of_this_commit
from tests.one_thread import one_thread
from tests.outcomes import Outcomes
from tests.runs import Runs
from tests.ui.cells import run_cells, shell
from workbench.notebook import open_study
from workbench.notebook.open_study import OpenStudy
from workbench.notebook.pictures import browser
from workbench.notebook.run_many import declared_of, found, run_all
from workbench.notebook.run_one import report

SMALL = {
    "live": False,
    "requests": 8,
    "tokens": 512,
    "length": 1 << 16,
    "budget": 12,
    "steps": 32,
    "windows": 4,
}
STILL = re.compile(r'src="data:image/png;base64,([A-Za-z0-9+/=]{1000,})"')
BOOKS = found([Path(__file__).parents[2] / "notebooks"])


THIRD = 3
TURN = turn_of_this_commit() % THIRD


def first_alone(patch: pytest.MonkeyPatch, most: int) -> None:
    """A browser draws the first `most` stills that are asked for; the others go without, as where
    there is none."""
    drawn, still = [], OpenStudy.still

    def once(study: OpenStudy) -> bytes | None:
        drawn.append(study)
        return still(study) if len(drawn) <= most else None

    patch.setattr(OpenStudy, "still", once)


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_a_notebook_runs_and_shows_something(
    book, full, tmp_path, monkeypatch, outcomes: Outcomes, runs: Runs
):
    small, drawn = declared_of(book, SMALL), full or BOOKS.index(book) % THIRD == TURN
    if full:
        (result,) = run_all([book], small, timeout=600, report=tmp_path)
        assert result.error == ""
        page = result.page.read_text()
    else:
        first_alone(monkeypatch, int(drawn))
        find = open_study.study
        monkeypatch.setattr(
            open_study, "study", lambda slug: runs.shown(outcomes.asked(find(slug)))
        )
        with one_thread(), shell(tmp_path) as here:
            page = report(run_cells(book, small, here))
    stills = STILL.findall(page)
    if browser() is None or not drawn:
        assert stills == []  # cells run all the same
        return
    assert stills and base64.b64decode(stills[0]).startswith(b"\x89PNG")
    assert 'src="http' not in page


def test_every_family_that_is_built_has_a_notebook(root):
    from workbench.catalogue import catalogue

    families = {entry.family for entry in catalogue() if entry.built}
    assert {book.stem.split("_", 1)[1] for book in BOOKS} >= families
