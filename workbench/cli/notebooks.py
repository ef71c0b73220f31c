"""`workbench notebooks`: run many notebooks headless, or check what outputs they hold."""

import argparse
import math
from pathlib import Path

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import write_text
from workbench.cli.output import check_place, print_json, print_table, say

ABOUT = """run many notebooks headless, with a report; or check or clear their outputs

  workbench notebooks run notebooks/ --junit out.xml --html report/ -p seed=1
  workbench notebooks run notebooks/ --keep
  workbench notebooks check notebooks/
  workbench notebooks clear notebooks/
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("do", choices=("run", "check", "clear"))
    parser.add_argument("places", nargs="+", metavar="NB.ipynb|FOLDER")
    parser.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE",
        help="a parameter, for every notebook that has it",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="notebooks side by side (default 2)")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a cell may take")
    parser.add_argument("--junit", metavar="OUT.xml", help="write results as JUnit XML")
    parser.add_argument("--html", metavar="FOLDER", help="write a report with pictures there")
    parser.add_argument(
        "--keep", action="store_true",
        help="write what they print and still pictures into them, within a size",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from workbench.notebook.run_many import found

    books = found(args.places)
    if args.do == "run":
        return _run(args, books)
    return _check(books) if args.do == "check" else _clear(books)


def _run(args: argparse.Namespace, books: list[Path]) -> int:
    from workbench.cli.notebook import parameters
    from workbench.notebook.run_many import Result, index, junit, run_all

    if not 0 < args.timeout < math.inf:
        raise BadInput(f"--timeout {args.timeout}: give the seconds that a cell may take")
    if not 1 <= args.jobs <= 64:
        raise BadInput(f"--jobs {args.jobs}: give 1 to 64")
    check_place(args.junit)
    folder = Path(args.html) if args.html else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise BadInput(f"--html {folder}: is a file; give a folder")

    def done(result: Result, number: int, of: int) -> None:
        say(f"{number} of {of}  {result.path}  {result.seconds:.1f} s  {result.error or 'ran'}")

    say(f"running {counted(len(books), 'notebook')}, {args.jobs} side by side …")
    given = parameters(args.parameter)
    results = run_all(
        books, given, jobs=args.jobs, timeout=args.timeout, report=folder, is_kept=args.keep,
        done=done,
    )  # fmt: skip
    if args.junit:
        write_text(Path(args.junit), junit(results), "the results")
    page = index(results, folder) if folder is not None else None
    if args.json:
        rows = [{"path": r.path, "seconds": r.seconds, "cells": r.cells, "error": r.error}
                for r in results]  # fmt: skip
        print_json({"notebooks": rows, "html": page, "junit": args.junit})
    else:
        rows = [
            (str(r.path), f"{r.seconds:.1f} s", str(r.cells), r.error or "ran") for r in results
        ]
        print_table(("notebook", "time", "cells", "how it went"), rows)
        for path in filter(None, (args.junit, page)):
            print(f"wrote {path}")
    return 1 if any(result.error for result in results) else 0


def _check(books: list[Path]) -> int:
    from workbench.notebook.run_many import with_outputs

    said = with_outputs(books)
    for line in said:
        print(line)
    if not said:
        print(f"{counted(len(books), 'notebook')}, none holds outputs beyond what --keep leaves")
    return 1 if said else 0


def _clear(books: list[Path]) -> int:
    import nbformat

    from workbench.notebook.run_many import with_outputs
    from workbench.notebook.run_one import cleared, read

    dirty = [book for book in books if with_outputs([book])]
    for book in dirty:
        write_text(book, nbformat.writes(cleared(read(book))).rstrip("\n") + "\n", "the notebook")
        print(f"cleared {book}")
    return 0
