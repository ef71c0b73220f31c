"""Notebooks run headless: parameters in, executed notebook and HTML report out.

Parameters become a cell of assignments after the cell tagged `parameters` (or before the first code
cell). The report needs no network: no script or style is fetched, pictures are inside the page.
"""

import copy
import json
import math
import time
import warnings
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import NoSuchKernel
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from engine.core.errors import BadInput
from engine.core.limits import over, read_bytes
from engine.core.writing import write_text
from widgets.export.export import POLICY
from workbench.notebook.client import Client
from workbench.notebook.keep import keep
from workbench.notebook.pictures import STILL
from workbench.study_notebook import TAG

WIDGET = "application/vnd.jupyter.widget-view+json"  # needs a script from the network to be shown


def literal(text: str) -> Any:
    """A parameter's text as JSON where it is (numbers, true, lists), else as the text itself."""
    try:
        return json.loads(text, parse_constant=_number, parse_float=_number)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def _number(text: str) -> float:
    """A number, but for NaN and its kin, which are no names of Python's."""
    if not math.isfinite(float(text)):
        raise ValueError(text)
    return float(text)


def run_notebook(
    path: str | Path,
    parameters: dict[str, Any] | None = None,
    *,
    html: str | Path | None = None,
    out: str | Path | None = None,
    is_kept: bool = False,
    timeout: float = 600,
) -> dict[str, Any]:
    """Run every cell in a kernel of its own, in the notebook's folder.

    Returns cells (run), seconds, error ("" or one line naming the cell), html and out (paths or
    None). What was written is written even when a cell failed; `is_kept` writes the outputs that a
    commit may hold into the notebook itself, where all cells ran. Raises BadInput for a file that
    is no notebook, and for parameters the notebook does not declare.
    """
    book = cleared(read(Path(path)))  # what another run left in it is no output of this one
    inject(book, parameters or {}, str(path))
    client = Client(
        book, timeout=timeout, resources={"metadata": {"path": str(Path(path).resolve().parent)}}
    )
    begun, error = time.perf_counter(), ""
    try:
        client.execute()
    except CellTimeoutError:
        error = f"a cell took longer than {timeout:g} s; raise --timeout"
    except (CellExecutionError, DeadKernelError):
        error = _fault(book)
    except NoSuchKernel as fault:
        error = f"no kernel named {fault.name!r} here; choose another in Jupyter and save it so"
    except (OSError, RuntimeError) as fault:  # a kernel's own description is wrong, or its program
        error = (
            f"its kernel cannot be started ({(str(fault).splitlines() or ['unknown'])[0][:200]})"
        )
    if client.full:
        error = str(over(path, "its cells print and show more", "output_bytes"))
    seconds = time.perf_counter() - begun
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    ran = sum(cell.execution_count is not None for cell in code)
    written = {
        "html": _write(html, lambda: report(book)),
        "out": _write(out, lambda: nbformat.writes(book)),
    }
    if is_kept and not error:
        _write(path, lambda: nbformat.writes(keep(book)).rstrip("\n") + "\n")
    return {"cells": ran, "seconds": seconds, "error": error, **written}


def read(path: Path) -> nbformat.NotebookNode:
    """The notebook at `path`. Raises BadInput where there is none."""
    try:
        text = read_bytes(path, "notebook_bytes").decode("utf-8-sig")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of cells without an id, which reading gives them
            book = nbformat.reads(text, as_version=4)
            nbformat.validate(book)  # reading only warns; what is written of it later would fail
        return book
    except BadInput:
        raise
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file; give a notebook (*.ipynb)") from None
    except Exception as fault:  # nbformat takes the file's shape for granted and trips anywhere
        first = (str(fault).splitlines() or ["unreadable"])[0][:80]
        raise BadInput(f"{path}: not a notebook ({first})") from None


def cleared(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The same notebook without outputs and counts."""
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return book


def _tags(cell: nbformat.NotebookNode) -> list[str]:
    return list(cell.get("metadata", {}).get("tags", []))


def inject(book: nbformat.NotebookNode, parameters: dict[str, Any], name: str = "notebook") -> None:
    """Put a cell of assignments into `book`. Raises BadInput for undeclared parameters."""
    if not parameters:
        return
    tagged = [i for i, cell in enumerate(book.cells) if TAG in _tags(cell)]
    if not tagged:
        raise BadInput(f"{name}: takes no parameters (no cell is tagged {TAG!r})")
    names = declared(book.cells[tagged[0]].source)
    for key in parameters:
        if key not in names:
            there = ", ".join(sorted(names))[:200]
            raise BadInput(f"-p {key}: {name} has no such parameter; it takes: {there}")
    source = "\n".join(f"{key} = {value!r}" for key, value in parameters.items())
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["injected-parameters"]})
    book.cells.insert(tagged[0] + 1, cell)


def declared(source: str) -> set[str]:
    """Names that the lines of a parameters cell assign."""
    names = (line.partition("=")[0].split(":")[0].strip() for line in source.splitlines())
    return {name for name in names if name.isidentifier()}


def _fault(book: nbformat.NotebookNode) -> str:
    for place, cell in enumerate(book.cells, 1):
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                return f"cell {place} failed: {output.ename}: {output.evalue}".splitlines()[0]
    return "the kernel died"


def report(book: nbformat.NotebookNode) -> str:
    """The executed notebook as one HTML page that fetches nothing; still pictures are folded.

    Scripts in it are the notebook's own, which has run here: the page lets them draw, and forbids
    them any request, as it does pictures and frames from elsewhere.
    """
    book = copy.deepcopy(book)
    book.metadata.pop("widgets", None)  # their state, as untrusted as it is useless here
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if "data" in output:
                output["data"].pop(WIDGET, None)
            if STILL in output.get("metadata", {}) and "image/png" in output["data"]:
                image = escape(output["data"].pop("image/png").replace("\n", ""))
                output["data"]["text/html"] = (
                    "<details><summary>The same as a still picture</summary>"
                    f'<img style="max-width:100%" src="data:image/png;base64,{image}"></details>'
                )
    page: str = _exporter().from_notebook_node(book)[0]
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    return page.replace("<head>", f"<head>{policy}", 1)


@cache
def _exporter() -> Any:
    """What makes pages of notebooks; it compiles its templates once, a tenth of a second each."""
    from nbconvert import HTMLExporter

    made = HTMLExporter(require_js_url="", mathjax_url="", jquery_url="", mermaid_js_url="")
    made.exclude_input_prompt = made.exclude_output_prompt = True
    return made


def _write(path: str | Path | None, text: Any) -> str | None:
    if path is None:
        return None
    whole = text().encode("utf-8", "backslashreplace").decode()  # half a letter may be printed
    write_text(Path(path), whole, "the notebook")
    return str(path)
