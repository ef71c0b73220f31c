"""Splits of a described run: all divide, all fit, the quickest first."""

import pytest

from engine.cluster.described_search import candidates, described, search_described
from engine.cluster.parallelism import ParallelismConfig
from engine.core.config import update
from engine.core.errors import BadInput
from engine.training.plan.columns import columns
from engine.training.plan.memory import peaks
from engine.training.plan.schedule import Pipe
from engine.training.plan.schedules.interleaved_1f1b import Interleaved
from engine.training.plan.schedules.one_forward_one_backward import OneForwardOneBackward
from engine.training.step_time.described import TrainingRun
from engine.training.step_time.stages import held

CONFIG = update(
    ParallelismConfig(architecture="llama-3.1-8b"),
    {"devices": 8, "batch": 8, "model.device": "h100-sxm", "model.sequence": 4096},
)


def test_the_quickest_that_fit_come_first():
    run = described(CONFIG)
    found = search_described(run)
    seconds = [step.seconds for step, _ in found.steps]
    assert seconds == sorted(seconds) and found.fitting <= found.counted
    assert found.counted == len(list(candidates(run)))
    for step, wide in found.steps:
        assert step.memory.total <= 0.9 * 8e10 and wide.low < step.seconds < wide.high
        assert step.run.batch == 8 and step.run.microbatches >= 1


def test_what_cannot_be_is_told():
    with pytest.raises(BadInput, match="none of .* fits"):
        search_described(update(described(CONFIG), {"model": "llama-3.1-405b"}))
    with pytest.raises(BadInput, match="nothing divides 67 devices"):
        search_described(update(described(CONFIG), {"recipe.batch": 7, "cluster.devices": 67}))


@pytest.mark.parametrize(("chunks", "batch"), [(1, 8), (1, 2), (2, 8), (4, 8)])
def test_what_a_rank_holds_is_what_its_schedule_does(chunks, batch):
    changes = {
        "cluster.devices": 4, "split.pipeline": 4, "split.chunks": chunks, "recipe.batch": batch,
    }  # fmt: skip
    run = update(TrainingRun(), changes)
    schedule = Interleaved(chunks=chunks) if chunks > 1 else OneForwardOneBackward()
    plan = schedule.plan(Pipe(4, batch))
    assert held(run) == peaks(columns(plan), chunks).tolist()
