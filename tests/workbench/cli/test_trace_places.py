"""What `workbench trace` is named: links in a circle, a rank twice, a run that is there already;
and headings and JSON that a terminal would obey."""

import json
from pathlib import Path

import pytest

from workbench.cli.main import main
from workbench.cli.output import print_json, print_table

EVENT = {"ph": "X", "name": "gemm", "ts": 0, "dur": 1, "pid": 0, "tid": 0}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "rank.json"
    path.write_text(json.dumps([EVENT]))
    return path


@pytest.mark.parametrize("name", ["circle.run", "a\0b.run"])
def test_a_name_that_leads_nowhere_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "circle.run").symlink_to("circle.run")
    assert main(["trace", f"{tmp_path}/{name}"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_ranks_are_not_written_over(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = trace.with_name("other.json")
    other.write_text(trace.read_text())
    assert main(["trace", str(trace), str(other), "-o", str(other)]) == 2
    assert "would overwrite" in capsys.readouterr().err
    assert other.read_text() == trace.read_text()


def test_a_rank_given_twice_is_refused(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    again = trace.parent / "." / "again.json"
    again.symlink_to(trace.name)
    assert main(["trace", str(trace), str(again), "-o", str(trace.parent / "job.run")]) == 2
    assert "given twice" in capsys.readouterr().err


def test_a_run_beside_a_trace_is_kept(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = trace.with_suffix(".run")
    kept.write_text("measured for hours")
    assert main(["trace", str(trace)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert kept.read_text() == "measured for hours"
    assert main(["trace", str(trace), "-o", str(kept)]) == 0


@pytest.mark.parametrize("time", [{}, {"ts": None}, {"ts": "nan"}, {"ts": 1e99}, {"dur": -1}])
@pytest.mark.parametrize("command", [["--breakdown"], ["-o", "out.run"]])
def test_entries_without_a_time_are_told(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    time: dict[str, object],
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    whole = {**EVENT, "cat": "kernel", "args": {"stream": 7}}

    Path("t.json").write_text(
        json.dumps([whole, {k: v for k, v in (whole | time).items() if time or k != "ts"}])
    )
    assert main(["trace", "t.json", *command]) == 0
    assert "1 entries have no time" in capsys.readouterr().err


def test_headings_and_json_carry_nothing_a_terminal_obeys(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bad = "\x1b[31m\x9b31m\u202e"
    print_table([bad, bad], [[bad, bad]])
    print_json({bad: bad})
    out = capsys.readouterr().out
    assert not set(bad[:1] + "\x9b\u202e") & set(out)
    assert json.loads(out[out.index("{") :]) == {bad: bad}
