"""How far a model is read: a line at its beginning and one every second, where somebody asks."""

import logging

import pytest

from engine.core.paths import dataset
from engine.models.loading.load import load
from engine.models.tensors import reading
from engine.models.tensors.reading import Reading

FOLDER = dataset("models/agreement-100k")


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass as the test says."""
    now = [100.0]
    monkeypatch.setattr(reading.time, "monotonic", lambda: now[0])
    return now


def test_lines_come_once_a_second_until_all_is_read(clock, caplog):
    caplog.set_level(logging.INFO, logger=reading.LOG.name)
    of = Reading("big", 4 * 10**9)
    for _ in range(16):
        of.took(250_000_000)
        clock[0] += 0.5
    of.took(250_000_000)  # read again: said no more
    said = ["loading big: 4 GB"]
    said += [f"loading big: {0.25 + n / 2:.3g} of 4 GB" for n in range(1, 8)]
    assert caplog.messages == said


def test_a_model_says_its_own_size_and_nothing_to_who_did_not_ask(caplog):
    load(FOLDER)
    assert not caplog.messages
    caplog.set_level(logging.INFO, logger=reading.LOG.name)
    load(FOLDER)
    size = (FOLDER / "model.safetensors").stat().st_size / 1e9
    name, _, told = caplog.messages[0].removeprefix("loading ").partition(": ")
    assert name == str(FOLDER) and float(told.removesuffix(" GB")) == pytest.approx(size, rel=0.1)
