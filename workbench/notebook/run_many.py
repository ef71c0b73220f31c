"""Many notebooks at once: run them headless in parallel, report, and check what outputs they hold.

In come paths; out come results in the order of the paths, a JUnit file and an HTML report with an
index and a still picture of each.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from html import escape
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

from engine.core.errors import BadInput
from engine.core.names import counted
from workbench.notebook.keep import BYTES, may_hold
from workbench.notebook.run_one import TAG, declared, read, run_notebook

Done = Callable[["Result", int, int], None]
IMAGE = re.compile(r'<img[^>]+src="data:image/png;base64,([A-Za-z0-9+/=\s]+)"')
STYLE = """body{font:14px system-ui,sans-serif;margin:40px auto;max-width:960px;padding:0 16px}
@media (prefers-color-scheme:dark){body{background:#16181d;color:#e6e6e6}a{color:#7ab8ff}}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:8px;vertical-align:top;
border-bottom:1px solid #8884}td.n{text-align:right;font-variant-numeric:tabular-nums}
img{width:280px;border:1px solid #8884;border-radius:6px}.no{color:#c62828;font-weight:600}"""


@dataclass(frozen=True, slots=True)
class Result:
    """How one notebook went. `error`: one line, "" where all is well; `page`: its HTML, if any."""

    path: Path
    seconds: float
    cells: int
    error: str
    page: Path | None


def found(places: Sequence[str | Path]) -> list[Path]:
    """The notebooks at `places` (files, or folders with all below them), in order, each once."""
    books: dict[Path, None] = {}
    for place in map(Path, places):
        if place.is_dir():
            below = sorted(place.rglob("*.ipynb"))
            books |= dict.fromkeys(p for p in below if ".ipynb_checkpoints" not in p.parts)
        elif place.is_file():
            books[place] = None
        else:
            raise BadInput(f"{place}: no such file or folder; give notebooks or a folder of them")
    if not books:
        raise BadInput(f"{', '.join(map(str, places))}: no notebooks (*.ipynb) there")
    return list(books)


def run_all(
    books: Sequence[Path],
    parameters: dict[str, Any] | None = None,
    *,
    jobs: int = 1,
    timeout: float = 600,
    report: Path | None = None,
    is_kept: bool = False,
    done: Done | None = None,
) -> list[Result]:
    """Run every notebook, `jobs` side by side; one that fails leaves the others alone.

    A notebook gets those of `parameters` that it declares. `is_kept`: its outputs are written into
    it, as far as a commit may hold them. Raises BadInput for a parameter nobody declares, and for
    parameters where outputs are kept.
    """
    given = parameters or {}
    if given and is_kept:
        raise BadInput("--keep: takes no -p; kept outputs are those of a notebook as it stands")
    wanted = {book: declared_of(book, given) for book in books}
    unknown = [name for name in given if not any(name in own for own in wanted.values())]
    if unknown:
        raise BadInput(f"-p {unknown[0]}: none of these notebooks has such a parameter")
    if report is not None:
        report.mkdir(parents=True, exist_ok=True)
    pages = dict(zip(books, _pages(books, report), strict=True))
    results: dict[Path, Result] = {}
    # A process each: a notebook that takes its runner down takes nobody else's.
    with ProcessPoolExecutor(max_workers=max(1, jobs), mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(_one, b, wanted[b], pages[b], is_kept, timeout): b for b in books}
        for future in as_completed(waiting):
            book = waiting[future]
            try:
                results[book] = future.result()
            except BrokenProcessPool:
                results[book] = Result(book, 0.0, 0, "its runner died", None)
            except Exception as fault:
                why = f"its runner failed ({type(fault).__name__}: {fault})"[:300]
                results[book] = Result(book, 0.0, 0, why.splitlines()[0], None)
            if done is not None:
                done(results[book], len(results), len(books))
    return [results[book] for book in books]


def _pages(books: Sequence[Path], report: Path | None) -> Iterator[Path | None]:
    """A page for each; folders go into the name where names would meet."""
    names = [book.stem for book in books]
    for book in books:
        name = book.stem if names.count(book.stem) == 1 else "_".join(book.with_suffix("").parts)
        yield None if report is None else report / f"{name.replace('/', '')}.html"


def declared_of(book: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the parameters that the notebook declares."""
    try:
        cells = read(book).cells
    except BadInput:
        return {}  # said when it is run
    tagged = [c.source for c in cells if TAG in c.get("metadata", {}).get("tags", [])]
    names = declared(tagged[0]) if tagged else set()
    return {name: value for name, value in given.items() if name in names}


def _one(
    book: Path, parameters: dict[str, Any], page: Path | None, is_kept: bool, timeout: float
) -> Result:
    try:
        came = run_notebook(book, parameters, html=page, is_kept=is_kept, timeout=timeout)
    except BadInput as fault:
        return Result(book, 0.0, 0, str(fault), None)
    written = page if page is not None and page.is_file() else None
    return Result(book, came["seconds"], came["cells"], came["error"], written)


def junit(results: Sequence[Result]) -> str:
    """The results as JUnit XML, which CI servers read."""
    suite = ElementTree.Element(
        "testsuite",
        name="notebooks",
        tests=str(len(results)),
        failures=str(sum(bool(result.error) for result in results)),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    for result in results:
        case = ElementTree.SubElement(
            suite, "testcase", classname=_clean(str(result.path.parent)),
            name=_clean(result.path.stem), time=f"{result.seconds:.3f}",
        )  # fmt: skip
        if result.error:
            ElementTree.SubElement(case, "failure", message=_clean(result.error))
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True)


def _clean(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def index(results: Sequence[Result], folder: Path) -> Path:
    """Write the report's first page, with a still picture of each; returns its path."""
    rows = "".join(_row(result, folder) for result in results)
    bad = sum(bool(result.error) for result in results)
    said = f"{counted(len(results), 'notebook')}, {f'{bad} failed' if bad else 'all ran'}"
    head = "<th>notebook</th><th>seconds</th><th>cells</th><th>how it went</th><th></th>"
    text = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{said}</title>'
        f"<style>{STYLE}</style><h1>{said}</h1><table><tr>{head}</tr>{rows}</table></html>"
    )
    target = folder / "index.html"
    target.write_text(text, encoding="utf-8")
    return target


def _row(result: Result, folder: Path) -> str:
    name = escape(result.path.stem)
    picture = ""
    if result.page is not None:
        name = f'<a href="{_near(result.page)}">{name}</a>'
        still = IMAGE.search(result.page.read_text(encoding="utf-8"))
        if still:
            image = result.page.with_suffix(".png")
            image.write_bytes(b64decode(still[1]))
            alt = escape(f"picture from {result.path.stem}")
            picture = f'<img src="{_near(image)}" alt="{alt}">'
    went = f'<span class="no">{escape(result.error)}</span>' if result.error else "ran"
    numbers = f'<td class="n">{result.seconds:.1f}</td><td class="n">{result.cells}</td>'
    return f"<tr><td>{name}</td>{numbers}<td>{went}</td><td>{picture}</td></tr>"


def _near(path: Path) -> str:
    """The address of a file beside the page, whatever its name looks like."""
    return f"./{quote(path.name)}"


def with_outputs(books: Sequence[Path]) -> list[str]:
    """A sentence for each notebook that holds counts, or outputs that belong in no commit."""
    said = []
    for book in books:
        code = [cell for cell in read(book).cells if cell.cell_type == "code"]
        held = sum(not all(map(may_hold, cell.get("outputs", []))) for cell in code)
        counts = sum(cell.get("execution_count") is not None for cell in code)
        if held or counts:
            cells = counted(held, "cell holds", "cells hold")
            said.append(
                f"{book}: {cells} outputs, {counts} a count; clear them, or run it with --keep"
            )
        elif book.stat().st_size > BYTES:
            said.append(f"{book}: {book.stat().st_size:,} bytes; run it with --keep, or clear it")
    return said
