"""Plans on the command line: made, read, checked in words, and to PyTorch's files and back."""

import io
import json
import re

import pytest

from workbench.cli import main as cli

GOOD = "0F0 0F1 0B0 0B1; 1F0 1B0 1F1 1B1\n"


def test_a_schedule_is_printed_as_text_that_is_read_again(capsys, tmp_path):
    assert cli.main(["plan", "zb_v", "--set", "ranks=2", "--set", "microbatches=3"]) == 0
    out, said = capsys.readouterr()
    assert len(out.splitlines()) == 2 and "0F0" in out
    assert "can be run: 2 ranks, 4 stages, 3 microbatches; bubble 0." in said
    kept = tmp_path / "plan.txt"
    kept.write_text(out)
    assert cli.main(["plan", "--read", str(kept)]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize("more", [[], ["--transfers"]])
def test_it_goes_to_a_schedule_file_and_back(capsys, tmp_path, more):
    kept = tmp_path / "plan.csv"
    assert cli.main(["plan", "1f1b", *more, "--as", "csv", "--out", str(kept)]) == 0
    assert kept.read_text().startswith("0F0,")
    assert ("0SEND_F0" in kept.read_text()) == bool(more)
    capsys.readouterr()
    assert cli.main(["plan", "--read", str(kept)]) == 0
    again = capsys.readouterr().out
    assert cli.main(["plan", "1f1b", *more]) == 0
    assert capsys.readouterr().out == again


def test_pytorch_reads_the_file(capsys, tmp_path):
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    kept = tmp_path / "plan.csv"
    assert cli.main(["plan", "zb_h1", "--as", "csv", "--out", str(kept)]) == 0
    first = kept.read_text().splitlines()[0].split(",")
    assert [str(schedules._Action.from_str(cell)) for cell in first] == first


def test_facts_come_as_json(capsys):
    assert cli.main(["plan", "gpipe", "--set", "microbatches=4", "--as", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bubble_of_total"] == pytest.approx(3 / 7) and facts["activations"] == 4
    assert len(facts["plan"]) == facts["ranks"] == 4


def test_the_json_is_read_again(capsys, tmp_path):
    kept = tmp_path / "plan.json"
    assert cli.main(["plan", "zb_h1", "--as", "json", "--out", str(kept)]) == 0
    assert cli.main(["plan", "--read", str(kept), "--as", "json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["plan"] == json.loads(kept.read_text())["plan"]
    for text, says in (("{", "no JSON"), ('{"plan": 3}', 'no "plan" in it, a list of lines')):
        kept.write_text(text)
        assert cli.main(["plan", "--read", str(kept)]) == 2
        assert says in capsys.readouterr().err


def test_one_of_a_thing_is_no_plural(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("0F0 0B0"))
    assert cli.main(["plan", "--read", "-"]) == 0
    assert "1 rank, 1 stage, 1 microbatch;" in capsys.readouterr().err


def test_a_pasted_plan_is_checked(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(GOOD))
    assert cli.main(["plan", "--read", "-"]) == 0
    assert "can be run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0F0 0B0; 1B0 1F0", "1B0 comes before 1F0 on rank 1"),
        ("0F0 0X0", "line 1: action '0X0'"),
        ("", "empty"),
        # Each sends first and, sends blocking, waits for ever for the other to receive.
        (
            "0F0 0F1 0SEND_F0 0SEND_F1 0RECV_B0 0RECV_B1 0B0 0B1;"
            "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
            "plan is stuck: rank 0 waits at 0SEND_F1 .* for 1RECV_F1 of rank 1; "
            "rank 1 waits at 1SEND_B0 .* for 0RECV_B0 of rank 0",
        ),
    ],
)
def test_what_is_wrong_is_one_line_and_exit_code_2(capsys, tmp_path, text, said):
    kept = tmp_path / "plan.txt"
    kept.write_text(text)
    assert cli.main(["plan", "--read", str(kept)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert re.search(said, err)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["1f1b", "--read", "x"],
        ["--read", "/nowhere/plan.txt"],
        ["nosuch"],
        ["1f1b", "--limit", "1"],
        ["1f1b", "--set", "ranks=four"],
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(capsys, words):
    assert cli.main(["plan", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_streams_that_are_closed_take_nothing_and_give_nothing(monkeypatch):
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr("sys." + name, None)
    assert cli.main(["plan", "1f1b"]) == 0
    assert cli.main(["plan", "--read", "-"]) == 2
