"""Ctrl-C at any point of any command: back at once, in one line, nobody left, the next call works.

200 points with --full, in parts that a run of figures goes on from. Seconds are of processor time:
the wall's are the machine's.
"""

import json
import subprocess
import sys

import pytest

from tests.reliability import interrupts
from tests.reliability.clients import ROOT
from tests.reliability.interrupts import SAID

POINTS, PART = 200, 20
MOST = 1.0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, POINTS, PART))
def test_an_interrupt_at_any_point_ends_the_command(first):
    points = [str(first), str(first + PART)]
    words = [sys.executable, "-m", "tests.reliability.interrupts", *points]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not ran.returncode, f"ended with code {ran.returncode}: {ran.stderr[-SAID:]}"
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(found) == PART
    struck = [one for one in found if one["struck"]]
    assert len(struck) >= 0.8 * PART, "commands end before they are interrupted"
    wrong = [one for one in found if one["wrong"]]
    assert not wrong, json.dumps(wrong)  # of a list pytest keeps a few characters
    late = [one for one in struck if one["cpu"] > MOST]
    assert not late, json.dumps(late)


@pytest.mark.parametrize("fault", [ValueError("an odd fault"), KeyboardInterrupt()])
def test_an_error_that_a_command_lets_out_is_told_with_its_text(monkeypatch, fault):
    def command():
        raise fault

    monkeypatch.setattr(interrupts.cli, "command", command)
    monkeypatch.setattr(interrupts.cli, "main", lambda words: command())
    assert (found := interrupts.tried(0))["code"] == interrupts.FAULT
    assert found["wrong"][0] == "a traceback" and repr(fault).partition("(")[0] in found["wrong"][1]
