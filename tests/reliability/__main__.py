"""`python -m tests.reliability [--full] [FIGURE...]`: the 25 figures as a table and as JSON.

Each is tried by tests of this suite, in a process of its own with a bound of time. What each test
came to, and what it said where it failed, is kept; the next call goes on from there, within a
figure too, and no test runs twice for two figures. A figure is met only where all that is asked of
it was tried and held.
"""

import argparse
import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from engine.core.writing import write_text
from tests.reliability.figures import FIGURES, Figure
from tests.reliability.kept import WORST, failures, outcomes

ROOT = Path(__file__).resolve().parent.parent.parent
BEGIN, END = "<!-- reliability: python -m tests.reliability --readme -->", "<!-- /reliability -->"
COLUMNS = ("figure", "asked", "tried", "tests", "verdict", "missing", "commit")
OVER = "out of time"
CUT = "cut off"  # not by us: whoever ran the tests ended before they had
WHOLE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)  # all tests have run
SAME = "the same"  # the short form is the full one
LEFT = 5  # seconds below which no other figure is begun


def main() -> int:
    args = arguments()
    wanted = [f for f in FIGURES if not args.figures or f.number in args.figures]
    commit = _said("git", "rev-parse", "--short", "HEAD")
    form = "full" if args.full else "short"
    kept = _kept(args.out)
    until = time.monotonic() + args.seconds
    if args.again:
        for before in args.out.parent.glob(f"{args.out.name}.*"):
            before.unlink()
    for figure in wanted:
        key = f"{figure.number} {form} {commit}"
        # What lasts is another test where it is to last longer.
        lasting = f".{args.soak:g}-minutes" if figure.lasts and args.full else ""
        pieces = args.out.with_name(f"{args.out.name}.{form}-{commit}{lasting}")
        if not args.again and key in kept and kept[key]["verdict"] not in (OVER, CUT):
            continue
        if until - time.monotonic() < LEFT:
            say(f"{args.seconds:g} s are over; the same command goes on from here")
            break
        kept.pop(key, None)  # what is tried again is the last by time
        row = tried(figure, form, until - time.monotonic(), pieces, 60 * args.soak)
        kept[key] = {**row, "commit": commit}
        args.out.write_text(json.dumps(kept, indent=1) + "\n")
        say(line(kept[key]))
        for test, said in kept[key]["failures"].items():
            say(f"    {test}: {said.partition(chr(10))[0]}")
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
    parser.add_argument("--soak", type=float, default=15.0, help="minutes of what is to last")
    parser.add_argument("--out", type=Path, default=ROOT / ".reliability.json", help="what is kept")
    parser.add_argument("--again", action="store_true", help="what was tried at this commit, too")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--readme", action="store_true", help="put the table into README.md")
    return parser.parse_args()


def tried(
    figure: Figure, form: str, seconds: float, pieces: Path, soak: float = 900.0
) -> dict[str, Any]:
    """One figure tried: how many tests, what came out, met or not and why not. `pieces`: where
    each test's outcome is kept, other figures' too; those that are there are not run again."""
    size, missing = figure.short, ""
    if figure.lasts:
        done = min(soak / 3600, figure.lasts) if form == "full" else 0.0
        size = f"{60 * done:g} minutes" if done else size
        missing = "" if done == figure.lasts else f"{figure.lasts - done:.3g} hours"
    elif form == "full" and figure.full != SAME:
        size = figure.full
    row: dict[str, Any] = {
        "figure": figure.number, "asked": figure.asked, "form": form,
        "tried": size, "missing": missing,
        "date": time.strftime("%Y-%m-%d"), "tests": 0, **dict.fromkeys(WORST, 0), "seconds": 0.0,
    }  # fmt: skip
    begun = time.monotonic()
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0",
             "-p", "tests.reliability.kept", f"--kept={pieces}", f"--soak={soak}",
             *figure.tests]  # fmt: skip
    words += ["--full"] if form == "full" else []
    try:
        quiet = subprocess.DEVNULL
        code = subprocess.run(
            words, cwd=ROOT, timeout=seconds, stdout=quiet, stderr=quiet, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        code = None
    came = _of(figure, outcomes(pieces))
    row |= Counter(came.values()) | {"tests": len(came), "failures": _of(figure, failures(pieces))}
    row["seconds"] = round(time.monotonic() - begun, 1)
    if code is None:
        return {**row, "verdict": OVER}
    if code not in WHOLE:
        row["failures"] |= {"pytest": f"ended with code {code} before all tests had run"}
        return {**row, "verdict": CUT}
    return {**row, "verdict": verdict(row)}


def _of(figure: Figure, said: dict[str, str]) -> dict[str, str]:
    """Of all tests those that try this figure."""
    places = tuple(f"{place}{end}" for place in figure.tests for end in ("::", "/", "["))
    return {
        test: what for test, what in said.items()
        if test in figure.tests or test.startswith(places)
    }  # fmt: skip


def verdict(row: dict[str, Any]) -> str:
    if row["failed"] or row["error"] or row["tests"] <= row["skipped"]:
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

    What is not met hides all before it, whatever their forms; what was not finished says nothing.
    """
    found: dict[int, dict[str, Any]] = {}
    for row in kept.values():
        if row["verdict"] in (OVER, CUT):
            continue
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
