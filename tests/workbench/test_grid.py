"""Sweeps: every point of the grid has a row; one that fails says why and ends no other."""

import csv
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engine.core.errors import BadInput
from engine.distributed.fleet import Done, Fleet, answer, done
from workbench.cli import sweep as cli_sweep
from workbench.cli.main import main
from workbench.grid import Row, grid, shown, sweep

SLUG = "flover"
SMALL = ["--set", "executor=modelled", "--set", "workload.count=4"]
CHANGES = {"executor": "modelled", "workload.count": 4}


class Here(Fleet):
    """Pieces one after the other in this process: what processes do, without starting them."""

    def run(self, work: str, pieces: Sequence[Any]) -> Iterator[Done]:
        for number, piece in enumerate(pieces):
            yield done(number, answer(work, json.dumps(piece)))


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_sweep, "_fleet", lambda args: Here())


def test_a_grid_is_every_combination_in_order() -> None:
    assert grid(["a=1, 2", "b.c=x,y"]) == [
        {"a": "1", "b.c": "x"}, {"a": "1", "b.c": "y"},
        {"a": "2", "b.c": "x"}, {"a": "2", "b.c": "y"},
    ]  # fmt: skip
    for wrong, says in (("a", "write --over"), ("a=,", "write --over"), ("=1", "write --over")):
        with pytest.raises(BadInput, match=says):
            grid([wrong])
    with pytest.raises(BadInput, match="a twice"):
        grid(["a=1", "a=2"])
    with pytest.raises(BadInput, match="at most 4096"):
        grid([f"{name}=" + ",".join(map(str, range(20))) for name in "abc"])


def test_figures_follow_the_knob_and_a_bad_point_is_a_row() -> None:
    points = grid(["workload.count=2,5,-1"])
    rows = dict(sweep(Here(), SLUG, points, changes={"executor": "modelled"}))
    assert [rows[n].figures.get("requests") for n in range(3)] == [2.0, 5.0, None]
    assert "workload.count" in rows[2].failed and not rows[0].failed
    assert rows[0].figures["time"] > 0


def test_an_unknown_knob_is_refused_before_anything_runs() -> None:
    with pytest.raises(BadInput, match="--over 'bogus': no such knob"):
        next(sweep(Here(), SLUG, grid(["bogus=1,2"])))


def test_columns_are_those_asked_for_or_those_that_vary() -> None:
    rows = [Row({}, {"a": 1.0, "b": 1.0, "took": 1.0}), Row({}, {"a": 2.0, "b": 1.0, "took": 2.0})]
    assert shown(rows, []) == ["a"]
    assert shown(rows, ["b"]) == ["b"]
    with pytest.raises(BadInput, match="--figure 'c'"):
        shown(rows, ["c"])


def test_a_figure_that_the_first_point_has_none_of_is_refused_before_the_rest_run() -> None:
    ran: list[int] = []

    class Counting(Here):
        def run(self, work, pieces):
            ran.append(len(pieces))
            yield from super().run(work, pieces)

    small = dict(pair.split("=") for pair in SMALL[1::2])
    points = grid(["workload.count=2,3,4"])
    with pytest.raises(BadInput, match="--figure 'requestz': no point has it; did you mean"):
        list(sweep(Counting(), SLUG, points, changes=small, figures=["requestz"]))
    assert ran == [1]
    found = dict(sweep(Counting(), SLUG, points, changes=small, figures=["requests"]))
    assert [found[n].figures["requests"] for n in range(3)] == [2, 3, 4]


def test_the_command_prints_a_table_and_keeps_the_rows(
    here: None, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    place = tmp_path / "rows.json"
    told = ["sweep", SLUG, "--over", "workload.count=2,5", *SMALL[:2], "--figure", "requests"]
    assert main([*told, "--save", str(place)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["workload.count", "requests"]
    assert [line.split() for line in lines[1:]] == [["2", "2"], ["5", "5"]]
    assert [row["point"] for row in json.loads(place.read_text())] == grid(["workload.count=2,5"])


def test_a_failed_point_shows_in_the_exit_code_and_the_json(
    here: None, capsys: pytest.CaptureFixture
) -> None:
    told = ["sweep", SLUG, "--over", "workload.count=2,-5", *SMALL[:2], "--json"]
    assert main(told) == 1
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [bool(row["failed"]) for row in rows] == [False, True]


def test_without_ray_it_says_what_to_install(
    capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as where it is not installed
    assert main(["sweep", SLUG, "--over", "workload.count=2", "--ray"]) == 2
    assert "pip install" in capsys.readouterr().err


@pytest.mark.slow  # two processes load torch
def test_points_run_in_processes_of_their_own(capsys: pytest.CaptureFixture) -> None:
    told = ["sweep", SLUG, "--over", "workload.count=2,5", *SMALL[:2], "--jobs", "2", "--json"]
    assert main(told) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["figures"]["requests"] for row in rows] == [2, 5]


def test_a_table_has_the_first_views_figures_in_the_order_typed(here: None, capsys: Any) -> None:
    assert main(["sweep", SLUG, "--over", "workload.count=5,2", *SMALL[:2]]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith("workload.count") and "mean wait in queue" in head
    assert [line.split()[0] for line in lines] == ["5", "2"]
    assert "5 of 5" in lines[0] and "2 of 2" in lines[1]


def test_csv_has_every_figure_as_a_plain_number(here: None, capsys: Any) -> None:
    assert main(["sweep", SLUG, "--over", "workload.count=5,2", "--csv", *SMALL[:2]]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["workload.count"] for row in rows] == ["5", "2"]
    assert [float(row["requests"]) for row in rows] == [5.0, 2.0]
    assert all(float(row["time"]) > 0 and not row["failed"] for row in rows)


@pytest.mark.parametrize("limit", ["nan", "0", "-1", "soon"])
def test_a_limit_that_bounds_nothing_is_refused(limit, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", "flover", "--over", "workload.rate=4", "--limit", limit])
    assert f"--limit: invalid seconds value: '{limit}'" in capsys.readouterr().err
