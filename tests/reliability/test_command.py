"""The command of the figures: every one is there, its tests exist, and no verdict is given away."""

import json
import subprocess
import sys
from dataclasses import replace

from pytest import TestReport

from tests.reliability.__main__ import ROOT, _of, markdown, newest, told, tried, verdict
from tests.reliability.figures import FIGURES
from tests.reliability.kept import Kept, failures, outcomes


def test_there_are_25_figures_and_their_tests_exist():
    assert [figure.number for figure in FIGURES] == list(range(1, 26))
    for figure in FIGURES:
        assert figure.tests
        for place in figure.tests:
            path, _, name = place.partition("::")
            assert (ROOT / path).exists(), place
            assert not name or f"def {name}(" in (ROOT / path).read_text(), place


def row(**more):
    return {"figure": 1, "tests": 3, "failed": 0, "error": 0, "skipped": 0,
            "form": "full", "missing": "", "asked": "all", "commit": "abc",
            "date": "2026-11-22", "verdict": "met",
            "tried": "2,000 seeds x 500", **more}  # fmt: skip


def test_only_what_was_wholly_tried_is_met():
    assert verdict(row()) == "met"
    assert verdict(row(missing="something")) == "holds so far"
    assert verdict(row(form="short", tried="64 seeds x 60")) == "holds so far"
    assert verdict(row(failed=1)) == "not met" and verdict(row(tests=0)) == "not met"
    assert verdict(row(skipped=3)) == "not met", "nothing ran"
    assert verdict(row(skipped=1)) == "holds so far"


def test_what_is_not_met_later_hides_what_was_met():
    met, short = row(), row(form="short", verdict="holds so far")
    failed = row(form="short", verdict="not met")
    assert newest({"a": met, "b": short}) == [met]
    assert newest({"a": met, "b": failed}) == [failed]
    assert newest({"a": failed, "b": met}) == [met]
    assert newest({"a": met, "b": row(verdict="out of time")}) == [met]


def test_the_rows_of_a_table_are_read_as_they_were_written():
    rows = [row(), row(figure=4, verdict="not met", missing="half of it", date="2026-11-20")]
    again = told(f"before\n{markdown(rows)}\nafter")
    assert [each["figure"] for each in again] == [1, 4]
    assert markdown(again) == markdown(rows)
    assert "1 of 25 met; 2026-11-22." in markdown(again)


def test_it_runs_one_figure_and_goes_on_from_what_was_kept(tmp_path):
    kept = tmp_path / "kept.json"
    words = [sys.executable, "-m", "tests.reliability", "24", "--json", "--out", str(kept)]
    for _ in range(2):
        ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
        rows = json.loads(ran.stdout[ran.stdout.index("[") :])
        assert [(r["figure"], r["verdict"]) for r in rows] == [(24, "met")]
    assert "24  met" not in ran.stdout, "the second time it was kept"
    assert "| 24 |" in markdown(rows)


def test_what_lasts_is_met_only_where_it_lasted(tmp_path, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda *words, **more: subprocess.CompletedProcess(words, 0)
    )
    lasting = next(figure for figure in FIGURES if figure.lasts == 1)
    for minutes, missing in ((15, "0.75 hours"), (60, "")):
        row = tried(lasting, "full", 1.0, tmp_path / "none", 60 * minutes)
        assert (row["tried"], row["missing"]) == (f"{minutes} minutes", missing)
    assert tried(lasting, "short", 1.0, tmp_path / "none")["missing"] == "1 hours"


def test_tests_that_end_before_their_time_are_told_as_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda *words, **more: subprocess.CompletedProcess(words, -9)
    )
    row = tried(FIGURES[0], "full", 1.0, tmp_path / "none")
    assert row["verdict"] == "cut off" and "code -9" in row["failures"]["pytest"]
    assert not newest({"a": {**row, "commit": "abc"}})


def test_a_figure_that_was_ended_goes_on_after_its_last_test(tmp_path):
    pieces = tmp_path / "pieces"
    figure = next(f for f in FIGURES if f.number == 24)
    gone, others = f"{figure.tests[0]}[gone]", "tests/reliability/test_command.py::others"
    pieces.write_text(f'["{others}", "failed", "what"]\n["{gone}", "failed", "why"]\n["cut o')
    row = tried(figure, "short", 300.0, pieces)
    assert (row["tests"], row["passed"], row["failed"]) == (2, 1, 1)
    assert row["verdict"] == "not met" and row["failures"] == {gone: "why"}


def test_no_test_runs_twice_for_two_figures(tmp_path):
    """Of a folder, a file, a test and its cases."""
    figure = replace(FIGURES[0], tests=("a/b", "c.py", "d.py::one"))
    its = ("a/b/x.py::y", "c.py::y[1]", "d.py::one", "d.py::one[2]")
    other = ("a/bc/x.py::y", "d.py::one_more", "d.py::two", "cc.py::y")
    assert [*_of(figure, dict.fromkeys((*its, *other), "passed"))] == [*its]


def test_what_a_failed_test_said_is_kept(tmp_path):
    path = tmp_path / "kept"
    kept = Kept(path)
    for when, broken in (("setup", None), ("call", "boom"), ("teardown", None)):
        outcome = "failed" if broken else "passed"
        kept.pytest_runtest_logreport(TestReport("a::b", ("a", 1, "b"), {}, outcome, broken, when))
    assert (outcomes(path), failures(path)) == ({"a::b": "failed"}, {"a::b": "boom"})
