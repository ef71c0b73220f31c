"""Other programs' share of the machine, and what a timed claim says of it."""

import dataclasses
import time

import pytest

from workbench.machine_load import MachineLoad
from workbench.study import Claim, Outcome, judge

BEFORE = "cpu 1000 0 0 9000 0 0 0 0 0 0\ncpu0 …\n"


@pytest.mark.parametrize(
    ("after", "share"),
    [
        ("cpu 1000 0 0 19000 0 0 0 0 0 0", 0.0),  # idle meanwhile
        ("cpu 8500 0 0 11500 0 0 0 0 0 0", 0.75),
        ("cpu 1000 0 0 14000 5000 0 0 0 0 0", 0.0),  # waiting for a disk is idle
        ("cpu 1000 2500 0 14000 0 0 0 2500 0 0", 0.5),  # nice, and taken by the host
        ("nothing to read", 0.0),
    ],
)
def test_the_share_is_of_busy_ticks_that_are_not_our_own(tmp_path, after, share):
    stat = tmp_path / "stat"
    stat.write_text(BEFORE)
    with MachineLoad(stat) as other:
        stat.write_text(after)
    assert other.share == pytest.approx(share, abs=0.01)


def test_own_work_is_not_others(tmp_path):
    stat = tmp_path / "stat"
    stat.write_text("cpu 0 0 0 0")
    with MachineLoad(stat) as other:
        until = time.process_time() + 0.2
        while time.process_time() < until:
            pass
        stat.write_text("cpu 20 0 0 20")  # 0.2 s of 100 ticks a second were ours
    assert other.share < 0.05


def test_a_machine_that_tells_nothing_is_not_called_busy(tmp_path):
    with MachineLoad(tmp_path / "absent") as other:
        pass
    assert other.share == 0.0


def claim(timed):
    fields = {"id": "a", "sentence": "A.", "paper": "p", "grade": "measured", "broken": {}}
    return Claim(**fields, check=lambda *_: Outcome("e", "m", False), timed=timed)


def test_only_a_timed_claim_is_doubted_for_a_busy_machine(monkeypatch):
    monkeypatch.setattr(MachineLoad, "__exit__", lambda self, *_: setattr(self, "share", 0.63))
    doubted = judge(claim(timed=True), None, None, True)
    assert "63% of the processors" in doubted.caution and "\n" not in doubted.caution
    assert judge(claim(timed=False), None, None, True).caution == ""
    assert dataclasses.replace(doubted, other_work=0.05).caution == ""
