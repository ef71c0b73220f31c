"""A disk that is full: one line, and what was found is said all the same."""

import json
from pathlib import Path

import pytest

from tests.workbench.toy import TOY
from workbench.cli import check as cli_check
from workbench.cli.main import main

FULL = Path("/dev/full")


def fault(capsys) -> str:
    """What was said of a fault: one line."""
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    return said[0]


def test_a_folder_that_cannot_be_trained_into_is_one_line(monkeypatch, capsys):
    def full(*words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("engine.recipes.language_models.reproduce", full)
    assert main(["train", "stdlib-5m", "--out", "new"]) == 2
    assert "cannot train into it" in fault(capsys)


@pytest.mark.parametrize(
    ("raised", "says"),
    [
        (OSError(28, "No space left on device", "/tmp/x"), "/tmp/x: no space left on device"),
        (OSError(12, "Cannot allocate memory"), "out of memory ([Errno 12]"),
        (MemoryError(), "out of memory: ask for less"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "out of memory (Default"),
    ],
)
def test_a_disk_or_memory_that_is_full_is_one_line_whoever_asks(raised, says, monkeypatch, capsys):
    def full(args):
        raise raised

    monkeypatch.setattr("workbench.cli.catalogue.run", full)
    assert main(["catalogue"]) == 2
    assert says in fault(capsys)


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_what_was_found_is_said_before_a_full_disk_takes_it(monkeypatch, capsys):
    monkeypatch.setattr(cli_check, "study", lambda slug: TOY)
    assert main(["check", "toy", "--json", "--save", str(FULL)]) == 2
    told = capsys.readouterr()
    assert all(row["slug"] == TOY.slug for row in json.loads(told.out))
    assert "/dev/full: cannot write" in told.err and "No space left" in told.err
    assert main(["notebook", "flover", "--out", str(FULL)]) == 2
    assert "cannot write the notebook (No space left" in fault(capsys)
