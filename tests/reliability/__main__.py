"""`python -m tests.reliability [--full] [FIGURE...]`: the 25 figures as a table and as JSON.

Each is tried by tests of this suite, in a process of its own with a bound of time. What is done is
kept in a file, from which the next call goes on; a figure is met only where all that is asked of it
was tried and held.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from engine.core.writing import write_text
from tests.reliability.figures import FIGURES, Figure

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN, END = "<!-- reliability: python -m tests.reliability --readme -->", "<!-- /reliability -->"
COLUMNS = ("figure", "asked", "tried", "tests", "verdict", "missing", "commit")
COUNTS = ("tests", "failures", "errors", "skipped")
SAME = "the same"  # the short form is the full one
LEFT = 5  # seconds below which no other figure is begun


def main() -> int:
    args = arguments()
    wanted = [f for f in FIGURES if not args.figures or f.number in args.figures]
    commit = _said("git", "rev-parse", "--short", "HEAD")
    form = "full" if args.full else "short"
    kept = _kept(args.out)
    until = time.monotonic() + args.seconds
    for figure in wanted:
        key = f"{figure.number} {form} {commit}"
        if key in kept and not args.again:
            continue
        if until - time.monotonic() < LEFT:
            say(f"{args.seconds:g} s are over; the same command goes on from here")
            break
        kept.pop(key, None)  # what is tried again is the last by time
        kept[key] = {**tried(figure, form, until - time.monotonic()), "commit": commit}
        args.out.write_text(json.dumps(kept, indent=1) + "\n")
        say(line(kept[key]))
    rows = [kept[key] for f in wanted if (key := f"{f.number} {form} {commit}") in kept]
    if args.readme:
        _into_readme(newest(kept))
    else:
        say(json.dumps(rows, indent=1) if args.json else markdown(rows))
    return int(any(row["verdict"] == "not met" for row in rows))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.reliability", description=__doc__)
    parser.add_argument("figures", nargs="*", type=int, metavar="FIGURE", help="1 to 25")
    parser.add_argument("--full", action="store_true", help="at the largest size there is")
    parser.add_argument("--seconds", type=float, default=3600.0, help="begin nothing after these")
    parser.add_argument("--out", type=Path, default=ROOT / ".reliability.json", help="what is kept")
    parser.add_argument("--again", action="store_true", help="what was tried at this commit, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    return parser.parse_args()


def tried(figure: Figure, form: str, seconds: float) -> dict[str, Any]:
    """One figure tried: how many tests, what came out, met or not and why not."""
    size = figure.full if form == "full" and figure.full != SAME else figure.short
    row: dict[str, Any] = {
        "figure": figure.number, "asked": figure.asked, "form": form,
        "tried": size, "missing": figure.missing,
        "date": time.strftime("%Y-%m-%d"), **dict.fromkeys(COUNTS, 0), "seconds": 0.0,
    }  # fmt: skip
    if not figure.tests:
        return {**row, "verdict": "not tried"}
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                 "-n", "0", f"--junitxml={report}", *figure.tests]  # fmt: skip
        try:
            subprocess.run(
                [*words, *(["--full"] if form == "full" else [])], cwd=ROOT, timeout=seconds,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            suite = ElementTree.parse(report).getroot().find("testsuite")
            assert suite is not None
            row |= {name: int(suite.get(name, "0")) for name in COUNTS}
        except (subprocess.TimeoutExpired, OSError, ElementTree.ParseError):
            return {**row, "verdict": "out of time", "seconds": time.monotonic() - begun}
    return {**row, "seconds": round(time.monotonic() - begun, 1), "verdict": verdict(row)}


def verdict(row: dict[str, Any]) -> str:
    if row["failures"] or row["errors"] or row["tests"] <= row["skipped"]:
        return "not met"
    whole = row["form"] == "full" or _figure(row["figure"]).full in (row["tried"], SAME)
    untried = row["missing"] or row["skipped"]
    return "met" if whole and not untried else "holds so far"


def _figure(number: int) -> Figure:
    return next(figure for figure in FIGURES if figure.number == number)


def line(row: dict[str, Any]) -> str:
    ran = f"{row['tests']} tests, {row['seconds']:.0f} s" if row["tests"] else "no tests"
    return f"{row['figure']:>2}  {row['verdict']:<12} {ran:<20} {row['asked']}"


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table; each row with the commit at which it was tried."""
    head = ["| | asked | tried | tests | verdict | not tried | commit |",
            "|--:|---|---|--:|---|---|---|"]  # fmt: skip
    body = [
        f"| {r['figure']} | {r['asked']} | {r['tried']} | {r['tests']} | {r['verdict']} "
        f"| {r['missing']} | {r['commit']} |"
        for r in rows
    ]
    met = sum(row["verdict"] == "met" for row in rows)
    date = max((row["date"] for row in rows), default="")
    return "\n".join([*head, *body, "", f"{met} of {len(FIGURES)} met; {date}."])


def newest(kept: dict[str, Any]) -> list[dict[str, Any]]:
    """Of each figure what was tried last, at whatever commit; full before short.

    What is not met hides all before it, whatever their forms.
    """
    found: dict[int, dict[str, Any]] = {}
    for row in kept.values():
        fuller = row["form"] == "full" or found.get(row["figure"], row)["form"] == "short"
        if fuller or row["verdict"] == "not met":
            found[row["figure"]] = row
    return [found[number] for number in sorted(found)]


def told(text: str) -> list[dict[str, Any]]:
    """The rows of a table that `markdown` wrote."""
    dates = re.findall(r"met; (\S+)\.$", text, re.MULTILINE)
    rows = []
    for told_row in re.findall(r"^\| (\d+ \|.*) \|$", text, re.MULTILINE):
        cells = [cell.strip() for cell in told_row.split("|")]
        row: dict[str, Any] = dict(zip(COLUMNS, cells, strict=True))
        rows.append({**row, "figure": int(row["figure"]), "date": max(dates, default="")})
    return rows


def _into_readme(rows: list[dict[str, Any]]) -> None:
    """Put the rows into the table; those of figures that are not among them stay."""
    path = ROOT / "README.md"
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    table, _, after = rest.partition(END)
    found = {row["figure"]: row for row in [*told(table), *rows]}
    text = markdown([found[number] for number in sorted(found)])
    write_text(path, f"{before}{BEGIN}\n{text}\n{END}{after}", "the table")


def _kept(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (OSError, ValueError):
        return {}


def _said(*words: str) -> str:
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "unknown"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
