"""The comparison: the twin does the same work, errors are what they are called, and are honest."""

import numpy as np
import pytest

from engine.core.config import from_dict
from engine.core.errors import BadInput
from engine.core.events import Span, Token
from engine.core.run import Run
from engine.hardware.device import device
from engine.inference.config import InferenceConfig
from engine.inference.executors.modelled import Modelled
from engine.inference.run import run
from engine.inference.workloads.replay import Replay, replay
from workbench.real_and_modelled import compare
from workbench.real_and_modelled import rows as compare_rows

SMALL = {
    "model": "gpt2",
    "workload": {
        "kind": "poisson",
        "count": 12,
        "rate": 0.0,
        "prompt": {"median": 40, "spread": 0.5},
        "output": {"median": 12, "spread": 0.5},
    },
    "max_running": 6,
}


def log_of(**choice):
    config = from_dict(InferenceConfig, {**SMALL, "executor": {"kind": "modelled", **choice}})
    return config, Run.execute(run, config).log


def test_a_replay_asks_the_same_prompts_and_gets_answers_of_the_same_lengths():
    config, log = log_of()
    twin = replay(compare.requests_of(config), compare.answers_of(log))
    again = Run.execute(run, config.model_copy(update={"workload": twin})).log
    assert compare.answers_of(again) == compare.answers_of(log)
    same = [[(s.start, s.stop, s.tag) for s in one.of(Span)] for one in (log, again)]
    assert same[0] == same[1], "the same scheduler, step for step"
    assert from_dict(Replay, twin.model_dump()) == twin


def test_a_request_that_was_never_answered_is_left_out_of_the_twin():
    config, log = log_of()
    answers = compare.answers_of(log)
    answers.pop(0)
    answers[1] = 0
    twin = replay(compare.requests_of(config), answers)
    assert len(twin.asked) == 10
    with pytest.raises(BadInput, match="no request was answered"):
        replay(compare.requests_of(config), {})


def test_errors_are_modelled_over_real_less_one():
    _, slow = log_of(per_step=4e-3)
    _, quick = log_of(per_step=1e-3)
    rows = {row["measure"]: row for row in compare_rows.figures(slow, slow, quick, slow)}
    span = rows["makespan"]
    assert span["error"] == pytest.approx(span["modelled"] / span["real"] - 1)
    assert span["error"] < -0.5 and span["roofs_error"] == span["repeat"] == 0.0
    assert rows["steps"]["error"] == 0.0 and rows["preemptions"]["error"] == 0.0
    assert rows["generated tokens"]["error"] > 1.0


def test_step_errors_are_those_of_the_very_steps_of_the_real_run():
    # Launches aside (a bare engine has them inside its kernels), truth and model are the same here.
    config, log = log_of(device="h100-sxm", per_step=1e-3)
    machine = device("h100-sxm")
    right = Modelled(per_step=1e-3)
    wrong = Modelled(per_step=2e-3)
    median, tail = compare_rows.step_errors(config, machine, (log, log), right, wrong)
    assert median["error"] == pytest.approx(0.0, abs=1e-9) and tail["error"] < 1e-9
    assert 0.1 < median["roofs_error"] < 1.0 and median["repeat"] == 0.0


def test_a_calibration_on_one_run_carries_over_to_another():
    truth = {"device": "h100-sxm", "per_step": 3e-3, "memory": 0.5, "arithmetic": 0.25}
    config, log = log_of(**truth)
    machine = device("h100-sxm")
    found = compare.calibrate(config, machine, log)
    other = compare.calibrating(config)
    assert other.seed != config.seed and other.workload != config.workload
    unseen = Run.execute(run, other).log
    rows = compare_rows.step_errors(
        config, machine, (unseen, log), Modelled(**found.knobs), Modelled(per_step=0.0)
    )
    assert rows[0]["error"] < 0.02 < rows[0]["roofs_error"]


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(BadInput, match="executor=real"):
        compare.lay(InferenceConfig(executor=Modelled()))
    with pytest.raises(BadInput, match="one sample"):
        compare.lay(from_dict(InferenceConfig, {"sampling": {"n": 2}}))
    short = {**SMALL, "executor": Modelled()}
    short["workload"] = {"kind": "steady", "count": 1, "prompt": 8, "output": 2}
    config = from_dict(InferenceConfig, short)
    with pytest.raises(BadInput, match="fewer than 8 steps"):
        compare.calibrate(config, device("h100-sxm"), Run.execute(run, config).log)


@pytest.fixture
def machine(monkeypatch):
    """This machine as somebody measured it, so that no test takes seconds to."""
    sheet = device("h100-sxm").model_copy(
        update={"peaks": {"float32": 1e11}, "bandwidth": 2e10, "launch": 1e-6, "host_link": ""}
    )
    monkeypatch.setattr(compare, "measure", lambda refresh: sheet)
    monkeypatch.setattr("engine.inference.executors.costs.modelled_executor.measure", lambda: sheet)
    return sheet


def test_a_real_run_and_its_twin_on_this_machine_take_the_same_steps(machine, monkeypatch):
    again = {"seed": 1}  # a short calibration: the test is of the plumbing, not of its quality
    monkeypatch.setattr(compare, "calibrating", lambda c: c.model_copy(update=again))
    config = InferenceConfig(
        model="stdlib-draft-1m",
        workload={"kind": "prompts"},
        sampling={"max_tokens": 8, "temperature": 0.8},
        max_running=2,
    )
    said: list[str] = []
    found = compare.lay(config, said.append)
    assert found.real.opened.clock == "wall" and found.modelled.opened.clock == "virtual"
    rows = {row["measure"]: row for row in found.rows}
    for exact in ("tokens generated", "steps", "preemptions"):
        assert rows[exact]["real"] == rows[exact]["modelled"] == rows[exact]["roofs"]
    assert rows["makespan"]["real"] > 0 and np.isfinite(rows["makespan"]["error"])
    assert rows["error of a step's time, median"]["error"] >= 0
    assert rows["steps calibrated on"]["real"] >= 8
    assert len(said) == 5 and said[0] == "measuring this machine"
    assert {t.text for t in found.modelled.of(Token)} != {t.text for t in found.real.of(Token)}
    head, *lines = compare.table(found.rows)
    assert len(lines) == len(found.rows) and all(len(line) == len(head) for line in lines)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"model": "no-such-model"}, "no such folder or name"),
        ({"workload": {"kind": "trace", "file": "missing.csv"}}, "missing.csv"),
    ],
)
def test_what_is_missing_is_said_before_the_machine_is_measured(change, says, monkeypatch):
    def measured(refresh):
        raise AssertionError("measured")

    monkeypatch.setattr(compare, "measure", measured)
    with pytest.raises(BadInput, match=says):
        compare.lay(from_dict(InferenceConfig, change))
