"""Steps read back from a log are the steps that were taken."""

import pytest

from engine.core.events import Branch, Span, Token
from engine.core.log import Log
from engine.core.run import Run
from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.device_cost import cost_of
from engine.inference.executors.modelled import Modelled
from engine.inference.run import run
from engine.inference.workloads.poisson import Poisson
from engine.models.loading.find import find
from workbench.real_and_modelled.steps_taken import steps_taken


def step(start, stop):
    return Span(stop, "engine", "step", start)


def prefill(thread, first, last, start, stop):
    return Span(stop, thread, "prefill", start, tag=f"{first}:{last}")


def test_prompts_decodes_and_the_time_between_steps_are_told_apart():
    log = Log(
        [
            Branch(0.0, "r0", "", "queued"),
            prefill("r0", 0, 8, 0.0, 1.0),
            step(0.0, 1.0),
            Branch(1.0, "r1", "", "queued"),
            prefill("r0", 8, 10, 1.5, 3.0),
            prefill("r1", 4, 6, 1.5, 3.0),
            step(1.5, 3.0),
            Token(3.0, "r0", "a"),
            Token(3.0, "r1", "b"),
            step(3.25, 4.0),
            Token(4.0, "r0", "c"),
            Token(4.0, "r1", "d"),
            Branch(4.0, "r0", "", "finished"),
            Branch(4.0, "r1", "", "finished"),
            Branch(90.0, "r2", "", "queued"),
            prefill("r2", 0, 3, 90.0, 91.0),
            step(90.0, 91.0),
        ]
    )
    first, second, third = steps_taken(log)
    assert (first.new_B.tolist(), first.context_B.tolist(), first.rows) == ([8], [8], 0)
    assert first.seconds == 1.5
    assert (second.new_B.tolist(), second.context_B.tolist()) == ([2, 2], [10, 6])
    assert second.rows == 2 and second.seconds == 1.75
    assert (third.new_B.tolist(), third.context_B.tolist()) == ([1, 1], [11, 7])
    assert third.seconds == 0.75 + 0.375, "idle until 90 s: the usual gap instead"


@pytest.mark.parametrize("changes", [{}, {"pages": 60, "host_pages": 0}, {"step_tokens": 48}])
def test_a_modelled_runs_steps_cost_what_its_model_said(changes):
    choice = Modelled(device="h100-sxm")
    config = InferenceConfig(
        model="gpt2",
        executor=choice,
        workload=Poisson(
            count=25, rate=200.0, prompt={"median": 60, "spread": 0.7, "longest": 400}
        ),
        **changes,
    )
    log = Run.execute(run, config).log
    taken = steps_taken(log)
    spans = [span for span in log.of(Span) if span.name == "step"]
    cost = cost_of(find("gpt2").config, device(), "float32", choice)
    assert len(taken) == len(spans) - 1 > 20
    for one, span in zip(taken, spans, strict=False):
        seconds, flops, _ = cost.total(cost.shape(one.new_B, one.context_B, one.rows))
        assert flops == span.flops
        assert span.stop - span.start == pytest.approx(seconds + choice.per_step)


def device():
    from engine.hardware.device import device as sheet

    return sheet("h100-sxm")
