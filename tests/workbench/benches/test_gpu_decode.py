"""Decode steps of the engine as the GPU's bench times them, here on the processor."""

import pytest

from engine.models.model import Model
from tests.engine.inference.small import tiny_model
from workbench.benches._gpu_decode import Drawn, read, row, seconds


@pytest.fixture(scope="module")
def model() -> Model:
    config = tiny_model().config
    return Model(config, Drawn(config, "bfloat16", "cpu"), "bfloat16", plain=True)


def test_a_row_says_time_limit_and_ratio(model: Model) -> None:
    said: list[str] = []
    found = row(model, 3, 20, 6, 1e12, said.append)
    assert 0 < found["limit_seconds"] < found["seconds"] and found["ratio"] > 0
    assert found["fraction_of_limit"] == found["limit_seconds"] / found["seconds"]
    assert said == [found["name"]]


def test_steps_that_read_prompts_are_not_counted(model: Model, monkeypatch) -> None:
    from workbench.benches import _gpu_decode

    kept: list[list[float]] = []
    monkeypatch.setattr(_gpu_decode, "median", lambda each: kept.append(each) or 1.0)
    assert seconds(model, 2, 300, 6, True) == 1.0
    assert 3 <= len(kept[0]) <= 6, "steps of both requests, counted from the second on"


def test_the_first_answers_wait_for_the_last_prompt(model: Model, monkeypatch) -> None:
    from workbench.benches import _gpu_decode

    kept: list[list[float]] = []
    monkeypatch.setattr(_gpu_decode, "STEP_TOKENS", 64)
    monkeypatch.setattr(_gpu_decode, "median", lambda each: kept.append(each) or 1.0)
    seconds(model, 5, 100, 4, True)
    assert len(kept[0]) >= 3, "eight steps read prompts"


def test_what_a_step_reads(model: Model) -> None:
    more = read(model, 2, 11.0) - read(model, 2, 10.0)
    assert more == 2 * model.spec.bytes_per_token()
