"""A pipeline's step on real ranks with the clock beside it: the same log, held to one process."""

import socket

import pytest

from engine.cluster.pipeline import ERROR, run
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Span
from engine.core.run import Run
from engine.core.tags import facts
from engine.training.pipeline.config import PipelineConfig
from engine.training.plan.bubble import PASSES, of_log

SMALL = {
    "executor": "both",
    "schedule": "zb_v",
    "ranks": 2,
    "microbatches": 3,
    "executor.layers": 5,
    "passes.forward": 0.02,
    "passes.backward_input": 0.02,
    "passes.backward_weight": 0.01,
}


@pytest.fixture(scope="module")
def log():
    """One launch for all of them."""
    return Run.execute(run, update(PipelineConfig(), SMALL)).log


def spans(log, grade):
    return [s for s in log.of(Span) if facts(s.tag).get("grade", "") == grade]


def test_gradients_are_those_of_one_process(log):
    (error,) = [e.value for e in log.of(Level) if e.name == ERROR]
    assert error < 1e-5


def test_every_pass_stands_there_measured_and_modelled(log):
    def passes(grade):
        named = [s for s in spans(log, grade) if s.name in (*PASSES, "optimiser")]
        return sorted((s.lane, s.name, s.tag.replace(" grade=modelled", "")) for s in named)

    assert passes("") == passes("modelled")
    assert len(passes("")) == 4 * 3 * 3 + 4  # F, I and W of three microbatches, and the optimiser
    assert [e.time for e in log] == sorted(e.time for e in log)
    assert {s.lane for s in spans(log, "modelled")} == {"rank 0", "rank 1"}


def test_passes_are_paced_and_the_clock_is_fed_with_what_each_took(log):
    least = {"F": 0.02 / 2, "I": 0.02 / 2, "W": 0.01 / 2}  # of a chunk, two on each rank
    real = [s for s in spans(log, "") if s.name in least]
    assert all(s.stop - s.start >= least[s.name] for s in real)
    took = {(span.name, span.tag): span.stop - span.start for span in real}
    for span in spans(log, "modelled"):
        if span.name in least:
            found = took[span.name, span.tag.replace(" grade=modelled", "")]
            assert span.stop - span.start == pytest.approx(found)


def test_bubbles_are_told_in_words_and_what_is_held_by_kind(log):
    told = {e.name: e.text for e in log.of(Mark) if e.lane == "plan"}
    assert f"{of_log(log).of_total:.2%} of the total" in told["measured bubble"]
    assert f"{of_log(log, 'modelled').of_total:.2%} of the total" in told["modelled bubble"]
    kinds = ("weights", "gradients", "optimiser", "activations", "buffers")
    assert {e.name for e in log.of(Level)} >= {f"memory/{kind}" for kind in kinds}


def test_a_port_in_use_is_said_in_one_line():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"port {port}: .*choose another"):
            Run.execute(run, update(PipelineConfig(), {**SMALL, "executor.port": port}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"executor.layers": 3}, "3 layers for 4 stages.*set executor.layers=4"),
        ({"schedule": "1f1b", "ranks": 20}, "16 and 256 at most; take executor=modelled"),
        ({"executor.hidden": 40}, "hidden size 40: .*multiple of 16"),
    ],
)
def test_what_ranks_cannot_do_is_said_before_they_start(changes, said):
    with pytest.raises(BadInput, match=said) as found:
        Run.execute(run, update(PipelineConfig(), {**SMALL, **changes}))
    assert "\n" not in str(found.value)
