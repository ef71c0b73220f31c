"""The committed notebooks, small: every cell runs without an error, and its report shows a picture.

Cells run in this process; with --full each in a kernel of its own, as `workbench notebooks run`
has it. Without --full a notebook runs at one commit in five, and when it has changed; what
it imports and opens is looked for each time.
"""

import ast
import base64
import inspect
import re

import pytest

from tests.one_thread import one_thread
from tests.outcomes import Outcomes
from tests.runs import Runs
from tests.turn import ROOT
from tests.ui.cells import run_cells, shell
from workbench.catalogue import study
from workbench.notebook import open_study
from workbench.notebook.open_study import OpenStudy
from workbench.notebook.pictures import browser
from workbench.notebook.run_many import declared_of, found, run_all
from workbench.notebook.run_one import read, report

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
BOOKS = found([ROOT / "notebooks"])
TURNING = [pytest.param(each, marks=pytest.mark.turns(n, each)) for n, each in enumerate(BOOKS)]


def first_alone(patch: pytest.MonkeyPatch) -> None:
    """A browser draws the first still that is asked for; the others go without, as where there is
    none."""
    drawn, still = [], OpenStudy.still

    def once(study: OpenStudy) -> bytes | None:
        drawn.append(study)
        return still(study) if len(drawn) == 1 else None

    patch.setattr(OpenStudy, "still", once)


@pytest.mark.parametrize("book", TURNING, ids=lambda book: book.stem)
def test_a_notebook_runs_and_shows_something(
    book, full, tmp_path, monkeypatch, outcomes: Outcomes, runs: Runs
):
    small = declared_of(book, SMALL)
    if full:
        (result,) = run_all([book], small, timeout=600, report=tmp_path)
        assert result.error == ""
        page = result.page.read_text()
    else:
        first_alone(monkeypatch)
        find = open_study.study
        monkeypatch.setattr(
            open_study, "study", lambda slug: runs.shown(outcomes.asked(find(slug)))
        )
        with one_thread(), shell(tmp_path) as here:
            page = report(run_cells(book, small, here))
    stills = STILL.findall(page)
    if browser() is None:
        assert stills == []  # cells run all the same
        return
    assert stills and base64.b64decode(stills[0]).startswith(b"\x89PNG")
    assert 'src="http' not in page


@pytest.mark.parametrize("book", BOOKS, ids=lambda book: book.stem)
def test_what_a_notebook_names_is_there(book):
    """What its cells import, and the studies they open with their presets and knobs."""
    cells = [ast.parse(cell.source) for cell in read(book).cells if cell.cell_type == "code"]
    words = set(inspect.signature(open_study.open_study).parameters)
    opened = 0
    for each in (each for cell in cells for each in ast.walk(cell)):
        match each:
            case ast.Import() | ast.ImportFrom():
                exec(ast.unparse(each), {})  # ours, as committed
            case ast.Call(ast.Name("open_study"), [ast.Constant(slug)], keywords):
                opened, given = opened + 1, {word.arg: word.value for word in keywords if word.arg}
                knobs = {word.partition("__")[0] for word in given.keys() - words}
                assert knobs <= set(type(study(slug).config).model_fields)
                match given.get("preset"):
                    case ast.Constant(preset):
                        assert preset in study(slug).presets
    assert opened


def test_every_family_that_is_built_has_a_notebook(root):
    from workbench.catalogue import catalogue

    families = {entry.family for entry in catalogue() if entry.built}
    assert {book.stem.split("_", 1)[1] for book in BOOKS} >= families
