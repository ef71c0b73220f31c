"""Notebooks headless: parameters go in, a report comes out, a failing cell is named."""

import json
import warnings

import nbformat
import pytest

from engine.core.errors import BadInput
from engine.core.limits import changed
from workbench.cli.main import main
from workbench.notebook import run_one
from workbench.notebook.client import Client
from workbench.notebook.pictures import STILL
from workbench.notebook.run_one import inject, literal, read, run_notebook

HTML = 'import IPython.display as d\nd.HTML("<b id=picture>%d</b>" % (n * 2))'


@pytest.fixture
def book(tmp_path):
    """A notebook with one parameter and one picture."""
    made = nbformat.v4.new_notebook()
    made.cells = [
        nbformat.v4.new_markdown_cell("# A question"),
        nbformat.v4.new_code_cell("n: int = 3", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(HTML),
    ]
    made.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    path = tmp_path / "book.ipynb"
    nbformat.write(made, path)
    return path


def test_a_notebook_runs_with_its_parameter_and_reports(book, tmp_path):
    out, page = tmp_path / "done.ipynb", tmp_path / "page.html"
    report = run_notebook(book, {"n": 21}, html=page, out=out, timeout=300)
    assert report["error"] == ""
    assert report["cells"] == 3
    text = page.read_text()
    assert '<b id="picture">42</b>' in text
    assert 'src="http' not in text
    assert nbformat.read(out, 4).cells[2].source == "n = 21"


def test_a_failing_cell_is_named_and_the_exit_code_is_one(book, capsys):
    assert main(["notebook", str(book), "-p", "n=oops"]) == 1
    assert "cell 4 failed: TypeError" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../evil", "nobodys"])
def test_a_kernel_that_there_is_not_is_that_notebooks_fault_alone(name, book, capsys):
    made = nbformat.read(book, 4)
    made.metadata.kernelspec.name = name
    nbformat.write(made, book)
    assert f"no kernel named {name!r}" in run_notebook(book)["error"]
    assert main(["notebook", str(book)]) == 1
    assert "Traceback" not in capsys.readouterr().err


def test_cells_without_an_id_are_nothing_to_warn_of(tmp_path):
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    del book.cells[0]["id"]
    path = tmp_path / "older.ipynb"
    path.write_text(json.dumps(book))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(path).cells[0].id


@pytest.mark.parametrize("pair", ["m=3", "n", "1n=3", "=3"])
def test_a_wrong_parameter_is_bad_input(book, pair, capsys):
    assert main(["notebook", str(book), "-p", pair]) == 2
    assert "-p" in capsys.readouterr().err


def test_a_notebook_without_the_tag_takes_none():
    with pytest.raises(BadInput, match="takes no parameters"):
        inject(nbformat.v4.new_notebook(), {"n": 1})


def test_a_file_that_is_no_notebook_is_bad_input(tmp_path):
    path = tmp_path / "x.ipynb"
    path.write_text("{}")
    with pytest.raises(BadInput, match="not a notebook"):
        run_notebook(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("2.5", 2.5),
        ("true", True),
        ("True", True),
        ("[1, 2]", [1, 2]),
        ("fast", "fast"),
        ("NaN", "NaN"),
        ("[1e999]", "[1e999]"),
    ],
)
def test_values_are_read_as_people_write_them(text, value):
    assert literal(text) == value


def printed(text):
    content = {"name": "stdout", "text": text}
    kind = {"msg_type": "stream"}
    return {**kind, "header": kind, "content": content, "parent_header": {"msg_id": "a"}}


def test_what_is_printed_beyond_the_limit_is_not_kept():
    cell = nbformat.v4.new_code_cell("")
    client = Client(nbformat.v4.new_notebook(cells=[cell]))
    client.reset_execution_trackers()
    client.clear_before_next_output = False
    with changed(output_bytes=1000):
        for text in ("a" * 500, "b" * 900, "c"):
            client.process_message(printed(text), cell, 0)
        assert client.full
    assert [output.text for output in cell.outputs] == ["a" * 500]


def test_a_notebook_is_written_whole_or_stays_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a.ipynb"
    path.write_text("old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(BadInput, match="No space left"):
        run_one._write(path, lambda: "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    run_one._write(path, lambda: "half a letter: \ud800")
    assert "half a letter" in path.read_text()


STOLEN = 'x"><script>stolen()</script>'


def test_a_report_escapes_what_it_puts_together_and_lets_nothing_be_fetched():
    still = nbformat.v4.new_output("display_data", {"image/png": STOLEN}, metadata={STILL: True})
    cell = nbformat.v4.new_code_cell("1", outputs=[still], metadata={"tags": [STOLEN]})
    away = nbformat.v4.new_markdown_cell("![a](http://example.org/a.png)")
    made = nbformat.v4.new_notebook(cells=[cell, away], metadata={"title": STOLEN})
    page = run_one.report(made)
    assert "<script>stolen" not in page
    head = page.split("<head>")[1]
    assert head.startswith('<meta http-equiv="Content-Security-Policy" content="default-src')


def test_what_another_run_left_is_no_output_of_this_one(book, tmp_path):
    """Of cells behind one that fails, and of those that are passed over."""
    made, out, page = nbformat.read(book, 4), tmp_path / "out.ipynb", tmp_path / "page.html"
    old = [nbformat.v4.new_output("display_data", {"text/html": "<b>of yesterday</b>"})]
    for cell in made.cells[1:]:
        cell.outputs, cell.execution_count = old, 7
    made.cells[1].source = "n = oops"
    nbformat.write(made, book)
    report = run_notebook(book, html=page, out=out)
    assert report["error"].startswith("cell 2 failed: NameError") and report["cells"] == 1
    assert "of yesterday" not in page.read_text() + out.read_text()
