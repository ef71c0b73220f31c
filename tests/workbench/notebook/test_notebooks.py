"""Many notebooks at once, notebooks made for studies, and still pictures."""

import io
import json
from base64 import b64decode, b64encode
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import numpy
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from PIL import Image

from engine.core.errors import BadInput
from widgets.theme import hues
from workbench import study_notebook as notebook_made
from workbench.catalogue import study, study_files
from workbench.cli.main import main
from workbench.notebook.keep import BYTES, keep
from workbench.notebook.open_study import OpenStudy
from workbench.notebook.pictures import STILL, browser, picture, shrunk
from workbench.notebook.run_many import Result, found, index, junit, run_all, with_outputs
from workbench.notebook.run_one import TAG, report

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADU"
    "lEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def write(path: Path, *cells: nbformat.NotebookNode) -> Path:
    made = new_notebook(cells=list(cells))
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path


@pytest.fixture
def books(tmp_path):
    """One that runs and takes a parameter, one that fails, one that is no notebook."""
    takes = new_code_cell("n = 3", metadata={"tags": [TAG]})
    write(tmp_path / "b" / "fine.ipynb", takes, new_code_cell("assert n == 4"))
    write(tmp_path / "a" / "wrong.ipynb", new_code_cell("1 / 0"))
    (tmp_path / "torn.ipynb").write_text("{")
    return tmp_path


def test_one_that_fails_leaves_the_others_alone(books, capsys):
    words = ["notebooks", "run", str(books), "-p", "n=4", "--json"]
    out, page = books / "out.xml", books / "report"
    assert main([*words, "--junit", str(out), "--html", str(page)]) == 1
    rows = {Path(r["path"]).stem: r for r in json.loads(capsys.readouterr().out)["notebooks"]}
    assert rows["fine"]["error"] == "" and rows["fine"]["cells"] == 3
    assert "ZeroDivisionError" in rows["wrong"]["error"]
    assert "not a notebook" in rows["torn"]["error"]
    suite = ElementTree.fromstring(out.read_text())
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    assert "2 failed" in (page / "index.html").read_text()
    assert (page / "fine.html").is_file()


def test_what_cannot_be_run_is_said(tmp_path, capsys):
    for words in (["no/such"], [str(tmp_path)], [str(tmp_path), "--jobs", "0"]):
        assert main(["notebooks", "run", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    book = write(tmp_path / "x.ipynb", new_code_cell("1"))
    with pytest.raises(BadInput, match="none of these notebooks has such a parameter"):
        run_all([book], {"m": 1})


def test_each_notebook_is_found_once_and_in_order(books):
    names = [path.stem for path in found([books / "b", books, books / "b" / "fine.ipynb"])]
    assert names == ["fine", "wrong", "torn"]


def test_results_as_junit_survive_any_text(tmp_path):
    wrong = Result(tmp_path / "a.ipynb", 1.0, 2, "cell 1 failed: \x00<&> \ud7ff", None)
    suite = ElementTree.fromstring(junit([wrong]).encode())
    assert "<&>" in str(suite[0][0].get("message"))


def test_the_index_escapes_and_shows_a_picture(tmp_path):
    page = tmp_path / "a.html"
    page.write_text(f'<img alt="x" src="data:image/png;base64,{PIXEL}">')
    bad = Result(tmp_path / "<b>.ipynb", 1.0, 2, "<script>", None)
    text = index([Result(tmp_path / "a.ipynb", 1.0, 2, "", page), bad], tmp_path).read_text()
    assert "<script>" not in text and "<b>" not in text
    assert 'src="./a.png"' in text and (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_committed_notebooks_hold_only_what_may_be_kept(root):
    books = found([root / "notebooks"])
    assert with_outputs(books) == []
    for text in (book.read_text() for book in books):
        assert STILL in text and "/work" not in text  # a picture, and no place of one machine


def test_kept_outputs_are_what_was_printed_and_stills_within_a_size(tmp_path):
    new, noise = nbformat.v4.new_output, numpy.random.default_rng(0)
    rough = io.BytesIO()
    Image.fromarray(noise.integers(0, 255, (300, 1280, 3), dtype="uint8")).save(rough, "PNG")
    still = {"image/png": b64encode(rough.getvalue()).decode(), "text/plain": "still"}
    cell = new_code_cell("x", execution_count=3)
    cell.outputs = [
        new("stream", name="stderr", text="warning"), new("stream", name="stdout", text="one "),
        new("stream", name="stderr", text="again"), new("stream", name="stdout", text="two"),
        new("display_data", {"text/html": "<b>", "text/plain": "b"}),
        new("display_data", still, metadata={STILL: True}),
        new("execute_result", {"text/plain": "1"}, execution_count=3),
    ]  # fmt: skip
    book = new_notebook(
        cells=[cell, *(new_code_cell("y", outputs=[cell.outputs[5]]) for _ in range(9))]
    )
    kept = keep(book)
    assert (cell.outputs[0].text, cell.execution_count) == ("one two", None)
    stills = [output for c in kept.cells for output in c.outputs if "data" in output]
    assert 1 <= len(stills) < 10 and len(nbformat.writes(kept)) <= BYTES
    assert Image.open(io.BytesIO(b64decode(stills[0].data["image/png"]))).width == 960
    nbformat.write(kept, tmp_path / "kept.ipynb")
    assert with_outputs([tmp_path / "kept.ipynb"]) == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_still_keeps_owners_hues_apart_however_little_there_is_of_them(dark):
    noise = numpy.random.default_rng(1).integers(0, 255, (300, 400, 3), dtype="uint8")
    for place, colour in enumerate(hues(dark)):
        noise[8:16, 12 * place : 12 * place + 8] = list(bytes.fromhex(colour[1:]))
    png = io.BytesIO()
    Image.fromarray(noise).save(png, "PNG")
    still = Image.open(io.BytesIO(shrunk(png.getvalue()))).convert("RGB")
    found = [still.getpixel((12 * place + 4, 12)) for place in range(len(hues(dark)))]
    assert found == [tuple(bytes.fromhex(colour[1:])) for colour in hues(dark)]


def test_outputs_are_kept_of_notebooks_as_they_stand(books, capsys):
    assert main(["notebooks", "run", str(books), "--keep", "-p", "n=4"]) == 2
    assert "takes no -p" in capsys.readouterr().err


def test_outputs_are_found_and_cleared(tmp_path, capsys):
    cell = new_code_cell("1", execution_count=1)
    cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "1"})]
    book = write(tmp_path / "held.ipynb", new_markdown_cell("# x"), cell)
    assert main(["notebooks", "check", str(tmp_path)]) == 1
    assert "1 cell holds outputs, 1 a count" in capsys.readouterr().out
    assert main(["notebooks", "clear", str(book)]) == 0
    assert main(["notebooks", "check", str(tmp_path)]) == 0


@pytest.mark.parametrize("slug", study_files())
def test_every_study_has_a_notebook_whose_cells_are_python(slug):
    made = notebook_made.notebook_of(study(slug))
    nbformat.validate(made)
    for cell in made.cells:
        if cell.cell_type == "code":
            compile(cell.source, slug, "exec")
    assert made == notebook_made.notebook_of(study(slug))


def test_a_made_notebook_turns_knobs_that_exist(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["notebook", "flover"]) == 0
    assert "flover.ipynb" in capsys.readouterr().out
    assert main(["notebook", "flover"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["notebook", "flovr"]) == 2
    assert "did you mean flover" in capsys.readouterr().err
    source = "\n".join(c.source for c in nbformat.read("flover.ipynb", 4).cells)
    for _, changes in study("flover").tries:
        assert all(f"'{path.replace('.', '__')}':" in source for path in changes)


def test_a_still_is_folded_into_the_report_and_kept_in_the_notebook():
    cell = new_code_cell("x", execution_count=1)
    cell.outputs = [
        nbformat.v4.new_output("display_data", {"image/png": PIXEL}, metadata={STILL: True})
    ]
    book = new_notebook(cells=[cell])
    assert "The same as a still picture" in report(book)
    assert book.cells[0].outputs[0].data["image/png"] == PIXEL


@pytest.mark.skipif(browser() is None, reason="no chromium on this machine")
def test_a_page_becomes_a_picture_of_the_asked_size():
    data = picture("<body style='background:red'>", 200, 100)
    assert data is not None and data.startswith(b"\x89PNG")
    assert [int.from_bytes(data[i : i + 4]) for i in (16, 20)] == [200, 100]


def test_a_study_is_shown_live_or_with_a_still(monkeypatch):
    shown: list[tuple[dict, dict]] = []
    monkeypatch.setattr(
        "IPython.display.display", lambda data, raw, metadata=None: shown.append((data, metadata))
    )
    one = OpenStudy.__new__(OpenStudy)
    one.live = False
    monkeypatch.setattr(OpenStudy, "_html", lambda self: "<p>page</p>")
    monkeypatch.setattr(OpenStudy, "__repr__", lambda self: "study")
    monkeypatch.setattr(OpenStudy, "still", lambda self: b"png")
    one._ipython_display_()
    assert [sorted(data) for data, _ in shown] == [
        ["text/html", "text/plain"],
        ["image/png", "text/plain"],
    ]
    assert shown[1][1] == {STILL: True}
    one.live = True
    monkeypatch.setattr("workbench.notebook.open_study.served_below", lambda: "/user/ann/workbench")
    one._ipython_display_()
    assert len(shown) == 3
