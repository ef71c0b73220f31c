"""The hardware bench: a row for each quantity, each in a unit a person reads."""

import json

import pytest

from engine.hardware.device import Device, Spread
from workbench.benches import hardware

SPREAD = Spread(low=1e9, median=2e9, high=3e9, count=5)


@pytest.fixture
def measured():
    spread = {
        name: Spread(low=1e-6, median=2e-6, high=3e-6, count=5) if unit == "µs" else SPREAD
        for name, (_, unit, _) in hardware.UNITS.items()
    }
    return Device(
        name="toy",
        kind="cpu",
        grade="measured",
        peaks={"float32": 1.0},
        bandwidth=1.0,
        capacity=1.0,
        measured="2026-01-02 03:04",
        spread=spread,
    )


def test_it_measures_as_often_as_asked_and_says_what_it_does(measured, monkeypatch):
    asked = []
    monkeypatch.setattr(hardware, "probe", lambda say, n: asked.append(n) or say("x") or measured)
    said: list[str] = []
    rows = hardware.run(full=False, say=said.append)
    hardware.run(full=True, say=said.append)
    assert asked == [hardware.QUICK, hardware.FULL] and said == ["x", "x"]
    assert json.loads(json.dumps(rows)) == rows, "plain values only"
    assert {row["name"] for row in rows} >= {"read", "copy", "matmul-float32", "torch-call"}


def test_the_table_shows_units_that_fit_and_the_date(measured):
    head, *lines = hardware.table(hardware.rows(measured))
    assert len(lines) == len(hardware.UNITS) and {len(line) for line in lines} == {len(head)}
    read = next(line for line in lines if line[0] == "read, all threads")
    assert read == ("read, all threads", "2", "1", "3", "GB/s", "2026-01-02 03:04")
    call = next(line for line in lines if line[0] == "call of a torch operation")
    assert call[1:5] == ("2", "1", "3", "µs")
