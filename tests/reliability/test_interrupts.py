"""Ctrl-C at any point of any command: back at once, in one line, nobody left, the next call works.

200 points with --full, in parts that a run of figures goes on from. Seconds are of processor time:
the wall's are the machine's.
"""

import json
import subprocess
import sys

import pytest

from tests.reliability.clients import ROOT

POINTS, PART = 200, 20
MOST = 1.0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, POINTS, PART))
def test_an_interrupt_at_any_point_ends_the_command(first):
    points = [str(first), str(first + PART)]
    words = [sys.executable, "-m", "tests.reliability.interrupts", *points]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(found) == PART
    struck = [one for one in found if one["struck"]]
    assert len(struck) >= 0.8 * PART, "commands end before they are interrupted"
    assert not [one for one in found if one["wrong"]]
    late = [one for one in struck if one["cpu"] > MOST]
    assert not late
