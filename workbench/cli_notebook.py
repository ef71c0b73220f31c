"""`workbench notebook`: run a notebook headless with parameters and write an HTML report."""

import argparse
import math
from typing import Any

from engine.core.errors import BadInput
from workbench.cli_output import check_place, print_json, say

ABOUT = """run a notebook headless with parameters

  workbench notebook notebooks/00_tour.ipynb -p requests=32 --html tour.html"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="NB.ipynb", help="the notebook")
    parser.add_argument(
        "-p", "--parameter", action="append", default=[], metavar="NAME=VALUE", help="a parameter"
    )
    parser.add_argument("--html", metavar="OUT.html", help="write a report with pictures")
    parser.add_argument("--out", metavar="OUT.ipynb", help="write the notebook with its outputs")
    parser.add_argument("--timeout", type=float, default=600, help="seconds a cell may take")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from workbench.headless import run_notebook

    if not 0 < args.timeout < math.inf:
        raise BadInput(f"--timeout {args.timeout}: give the seconds that a cell may take")
    check_place(args.html)
    check_place(args.out)
    say(f"running {args.file} …")
    report = run_notebook(
        args.file, _parameters(args.parameter), html=args.html, out=args.out, timeout=args.timeout
    )
    if args.json:
        print_json(report)
    else:
        print(f"ran {report['cells']} cells in {report['seconds']:.1f} s")
        for path in (report["html"], report["out"]):
            if path:
                print(f"wrote {path}")
        if report["error"]:
            say(f"workbench: {args.file}: {report['error']}")
    return 1 if report["error"] else 0


def _parameters(pairs: list[str]) -> dict[str, Any]:
    from workbench.headless import literal

    found = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name.isidentifier():
            raise BadInput(f"-p {pair!r}: not a name and a value; write -p NAME=VALUE")
        found[name] = literal(value)
    return found
