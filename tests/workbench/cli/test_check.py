"""`workbench check`: what it prints of one claim and of several, and its exit code."""

import json
from dataclasses import replace

import pytest

from tests.workbench.toy import TOY
from workbench.cli import check as cli_check
from workbench.cli.main import main
from workbench.regime import Regime
from workbench.study import Outcome


@pytest.fixture
def toy(monkeypatch):
    """The toy study in place of any other."""
    monkeypatch.setattr(cli_check, "study", lambda slug: TOY)


def test_check_says_yes_and_no_by_exit_code(toy, capsys):
    assert main(["check", "flover", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["holds"] is True
    assert {"slug", "claim", "grade", "expected", "measured", "holds"} <= set(row)
    assert main(["check", "flover", "--set", "order=down", "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)
    assert row["holds"] is False


def test_several_claims_are_told_in_short_and_one_in_full(toy, capsys):
    assert main(["check", "flover", "flover"]) == 0
    short = capsys.readouterr().out
    assert main(["check", "flover", "flover", "--long"]) == 0
    full = capsys.readouterr().out
    assert main(["check", "flover"]) == 0
    (claim,) = TOY.claims
    assert claim.sentence in capsys.readouterr().out
    assert full.count(claim.sentence) == 2 and f"the paper: {claim.paper}" in full
    assert claim.sentence not in short and short.count(f"/ {claim.id}") == 2


def test_one_map_is_drawn_by_its_name(monkeypatch, capsys, tmp_path):
    """Not the others of its claim, whose kept ones stay as they are."""
    one, other = (
        Regime(TOY.claims[0].id, knob, (1.0, 2.0), "requests", "yes", judged=holds)
        for knob in ("count", "seed")
    )
    study = replace(TOY, regimes=(one, other))
    monkeypatch.setattr(cli_check, "study", lambda slug: study)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, drawn in ((one.name, [one.name]), (one.claim, [one.name, other.name])):
        assert main(["check", "toy", "--regimes", "--claim", name, "--json"]) == 0
        assert [row["name"] for row in json.loads(capsys.readouterr().out)] == drawn
    assert main(["check", "toy", "--regimes", "--claim", "nothing over nothing"]) == 2


def holds(config, value, run, fast):
    return Outcome("", "", True)
