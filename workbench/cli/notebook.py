"""`workbench notebook`: run a notebook headless with parameters, or make one for a study."""

import argparse
import math
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.writing import write_text
from workbench.cli.output import check_place, print_json, say

ABOUT = """run a notebook headless with parameters, or make one for a study

  workbench notebook notebooks/00_tour.ipynb -p requests=32 --html tour.html
  workbench notebook hogwild                           writes hogwild.ipynb"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="NB.ipynb|SLUG", help="the notebook, or a study's name")
    parser.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help="a parameter"
    )
    parser.add_argument("--html", metavar="OUT.html", help="write a report with pictures")
    parser.add_argument(
        "--out", metavar="OUT.ipynb", help="write the notebook with its outputs, or the one made"
    )
    parser.add_argument("--timeout", type=float, default=600, help="seconds a cell may take")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from workbench.notebook.run_one import run_notebook

    if not 0 < args.timeout < math.inf:
        raise BadInput(f"--timeout {args.timeout}: give the seconds that a cell may take")
    check_place(args.html)
    check_place(args.out)
    if not args.file.endswith(".ipynb"):
        return _make(args)
    say(f"running {args.file} …")
    report = run_notebook(
        args.file, parameters(args.parameter), html=args.html, out=args.out, timeout=args.timeout
    )
    if args.json:
        print_json(report)
    else:
        print(f"ran {counted(report['cells'], 'cell')} in {report['seconds']:.1f} s")
        for path in (report["html"], report["out"]):
            if path:
                print(f"wrote {path}")
        if report["error"]:
            say(f"workbench: {args.file}: {report['error']}")
    return 1 if report["error"] else 0


def _make(args: argparse.Namespace) -> int:
    import nbformat

    from workbench.catalogue import study
    from workbench.study_notebook import notebook_of

    if args.parameter or args.html:
        raise BadInput(
            f"{args.file}: a study's notebook is made first; then run it with -p, --html"
        )
    chosen = study(args.file)
    target = Path(args.out or f"{chosen.slug}.ipynb")
    if target.exists() and not args.out:
        raise BadInput(f"{target}: is there already; choose another name with --out")
    write_text(target, nbformat.writes(notebook_of(chosen)) + "\n", "the notebook")
    if args.json:
        print_json({"out": target})
    else:
        print(f"wrote {target}; open it in JupyterLab, or run it: workbench notebook {target}")
    return 0


def parameters(pairs: list[str]) -> dict[str, Any]:
    """`NAME=VALUE` texts as values. Raises BadInput for what is no name and value."""
    from workbench.notebook.run_one import literal

    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise BadInput(f"-p {pair!r}: not a name and a value; write -p NAME=VALUE")
        found[name] = literal(value)
    return found
