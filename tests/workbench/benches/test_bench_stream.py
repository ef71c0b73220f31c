"""`workbench bench kernels`, STREAM's part: nothing is faster than what it names as its limit."""

import pytest

from engine.hardware.device import Device, Spread
from workbench.benches._kernels import stream


@pytest.fixture
def slow_probes(monkeypatch):
    """A machine whose probes caught a bad moment, so that they are no limit of anything."""
    low = {name: Spread(low=1.0, median=1.0, high=1.0, count=1) for name in ("read", "copy")}
    monkeypatch.setattr(stream, "probe", lambda say, repeats: Device.model_construct(spread=low))
    monkeypatch.setattr(stream, "LENGTH", 2**18)


def test_no_operation_passes_its_limit(slow_probes):
    rows = stream.rows(False, lambda text: None)
    assert [row["name"] for row in rows] == [f"stream {op.name}" for op in stream.OPERATIONS]
    for row in rows:
        assert 0 < row["fraction_of_limit"] <= 1
        assert row["limit_seconds"] <= row["seconds"]
