"""Many modelled steps: stragglers, uneven passes, failures, checkpoints; against closed forms."""

from math import inf

import numpy as np
import pytest

from engine.cluster.goodput import daly, expected, played, young
from engine.cluster.pipeline import run
from engine.core.config import update
from engine.core.errors import BadInput
from engine.core.events import Level, Mark, Span
from engine.core.log import Log
from engine.core.run import Run
from engine.training.pipeline.config import PipelineConfig
from engine.training.plan.bubble import of_log

FAILING = {
    "executor.faults.steps": 400, "executor.faults.mtbf": 400.0, "executor.faults.write": 0.5,
    "executor.faults.restart": 2.0,
}  # fmt: skip


def log(seed: int = 0, **turned) -> Log:
    dotted = {path.replace("__", "."): value for path, value in turned.items()}
    return Run.execute(run, update(PipelineConfig(), dotted), seed=seed).log


def told(found: Log) -> dict[str, str]:
    return {mark.name: mark.text for mark in found.of(Mark) if mark.lane == "plan"}


@pytest.mark.parametrize(("work", "write", "restart", "mtbf"), [
    (30.0, 2.0, 5.0, 100.0), (5.0, 1.0, 0.0, 50.0), (80.0, 10.0, 20.0, 60.0),
])  # fmt: skip
def test_the_time_between_checkpoints_is_the_closed_form_on_average(work, write, restart, mtbf):
    segments = 6000
    found = played(lambda _: work, segments, 1, write, restart, mtbf, seed=1)
    wanted = segments * expected(work, write, restart, mtbf) - write  # none after the last
    assert found.end == pytest.approx(wanted, rel=0.05)
    assert found.useful == pytest.approx(segments * work)


def test_the_best_interval_is_dalys_and_youngs_is_near():
    write, mtbf = 10.0, 3600.0
    tried = np.linspace(30, 1200, 4000)
    costs = [expected(work, write, 60.0, mtbf) / work for work in tried]
    best = float(tried[int(np.argmin(costs))])
    assert daly(write, mtbf) == pytest.approx(best, rel=0.01)
    assert young(write, mtbf) == pytest.approx(best, rel=0.06)
    assert daly(50.0, 20.0) == 20.0 and expected(3.0, 1.0, 9.0, inf) == 4.0


def test_checkpoints_too_often_or_too_seldom_cost_goodput():
    write, mtbf = 1.0, 200.0
    near = round(daly(write, mtbf))

    def good(every: int) -> float:
        found = [played(lambda _: 1.0, 4000, every, write, 5.0, mtbf, seed) for seed in range(3)]
        return float(np.mean([each.goodput for each in found]))

    assert good(near) > good(near // 5) and good(near) > good(near * 5)


def test_a_history_leaves_no_gap_and_loses_what_no_checkpoint_holds():
    found = played(lambda step: 1.0 + step % 3, 60, 7, 0.5, 2.0, 40.0, seed=3)
    assert len(found.failures) > 2
    edges = [(a.stop, b.start) for a, b in zip(found.pieces, found.pieces[1:], strict=False)]
    assert all(a == b for a, b in edges) and found.pieces[-1].stop == found.end
    assert found.useful == sum(1.0 + step % 3 for step in range(60))
    for before, after in zip(found.pieces, found.pieces[1:], strict=False):
        if before.what == "restart" and after.what == "step":
            assert after.step == before.saved and after.step % 7 == 0


def test_training_that_never_gets_on_is_refused():
    with pytest.raises(BadInput, match=r"failures training is at step 0 of 50; take checkpoints"):
        played(lambda _: 10.0, 50, 50, 1.0, 1.0, 2.0, seed=0)
    with pytest.raises(BadInput, match=r"failures training is at step \d of 5; take"):
        played(lambda _: 0.1, 5, 1, 0.1, 50.0, 0.5, seed=0)  # no restart ever comes to its end


def test_one_plain_step_is_as_it_was():
    assert log().of(Span) == log(execution__faults__every=3).of(Span)


def test_steps_follow_one_another_and_show_every_rank_where_they_are_few():
    one, many = log(), log(execution__faults__steps=5)
    assert many.duration == pytest.approx(5 * one.duration)
    ranks = [span for span in many.of(Span) if span.lane.startswith("rank ")]
    assert len(ranks) == 5 * len(one.of(Span))
    assert [s.name for s in many.of(Span) if s.lane == "training"] == ["step"] * 5
    assert "goodput 100.0%: nothing fails" in told(many)["goodput"]
    large = log(execution__faults__steps=1000)
    assert large.opened.facts["lanes"] == ["training", "checkpoints", "failures"]


def test_uneven_passes_make_a_step_longer_and_follow_the_seed():
    even = log(execution__faults__steps=32)
    uneven = log(execution__faults__steps=32, execution__faults__jitter=0.3)
    assert uneven.duration > 1.05 * even.duration
    assert uneven.duration == log(execution__faults__steps=32,
                                  execution__faults__jitter=0.3).duration  # fmt: skip
    assert uneven.duration != log(1, execution__faults__steps=32,
                                  execution__faults__jitter=0.3).duration  # fmt: skip
    assert of_log(uneven).of_total > of_log(even).of_total


def test_failures_are_marks_lost_work_is_done_again_and_goodput_is_told():
    found = log(**FAILING)
    failures = [mark for mark in found.of(Mark) if mark.name == "failure"]
    assert failures and "to do again" in " ".join(mark.text for mark in failures)
    kinds = {span.name for span in found.of(Span)}
    assert kinds == {"step", "checkpoint", "lost", "restart"}
    goodput = [level.value for level in found.of(Level) if level.name == "goodput"]
    assert min(goodput) > 0 and max(goodput) <= 1
    done = [level.value for level in found.of(Level) if level.name == "steps done"]
    assert done[-1] == 400 and any(b < a for a, b in zip(done, done[1:], strict=False))
    words = told(found)
    assert f"goodput {goodput[-1]:.1%}" in words["goodput"]
    assert "checkpoints pay best" in words["interval"]
    mtbf = 400.0 / 4  # of four ranks
    assert f"{young(0.5, mtbf):.4g} s apart (Young)" in words["interval"]


def test_on_a_cluster_one_of_all_ranks_is_slow_and_holds_up_the_sum():
    shared = {"cluster__name": "selene", "cluster__replicas": 2, "passes__gradients": 1e9}
    plain = log(**shared)
    slow = log(**shared, slow_rank=5, slow_by=2.0)
    busy = {
        lane: sum(s.stop - s.start for s in slow.of(Span) if s.lane == lane and s.name in "FB")
        for lane in slow.opened.facts["lanes"]
    }
    assert max(busy, key=busy.__getitem__) == "rank 5"
    assert busy["rank 5"] == pytest.approx(2 * busy["rank 1"])
    assert slow.duration > 1.4 * plain.duration
    uneven = log(**shared, execution__faults__jitter=0.2, execution__faults__steps=3)
    assert uneven.duration > 3 * plain.duration
