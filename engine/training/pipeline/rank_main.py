"""Main function of each launched rank of a pipeline: two training steps, the second one timed.

The gradients of the first, from fresh weights, are given back to be held to one process's.
"""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from engine.distributed.rank import Rank
from engine.training.loop.flat_adamw import FlatAdamW
from engine.training.losses.language import fresh_weights
from engine.training.pipeline.tiny_model import TinyModel
from engine.training.plan.actions import KINDS, Kind, read
from engine.training.plan.columns import CODES
from engine.training.stages.memory import OPTIMISER, Ledger
from engine.training.stages.program import NAMES, Duty
from engine.training.stages.ranks import Pace, follow
from engine.training.stages.stage import Stage, language_stages

RATE = 1e-3


@dataclass(frozen=True)
class RankTask:
    """What every rank is given. `plan`: lowered, as text; `passes` [kinds][stages]: seconds that
    passes are paced to, None where they are not; `stall`: seconds slept between a message and its
    pass; `swapped`: the microbatch whose place another one takes (-1: none)."""

    tiny: TinyModel
    plan: str
    passes: list[list[float]] | None
    stall: float
    swapped: int
    blocking: bool


def work(rank: Rank, task: RankTask) -> None:
    """Two steps of one rank: what each launched process runs."""
    rank.enter("model making")
    duty = _duty(rank, task)
    rank.enter("first step")
    _first(rank, duty, kept=task.tiny.compared)
    rank.record.events.clear()
    rank.transport.finish()
    rank.transport.forget()
    rank.transport.open()
    rank.enter("timed step")
    follow(rank, duty, Pace(partial(_least, task.passes), task.stall))


def _first(rank: Rank, duty: Duty, kept: bool) -> None:
    """A step of which nothing is told but its gradients, where they are `kept`."""
    for gradients in follow(rank, duty).gradients.values():
        for name, gradient in gradients.items() if kept else ():
            rank.record.put(name, gradient.numpy())


def _duty(rank: Rank, task: RankTask) -> Duty:
    tiny, plan = task.tiny, read(task.plan)
    model = tiny.config()
    stages = language_stages(
        model, fresh_weights(model, tiny.seed), plan.stages, tiny.rows, tiny.sequence,
        lambda stage: plan.rank_of[stage] == rank.rank,
    )  # fmt: skip
    batch = tiny.microbatches(plan.microbatches)
    if task.swapped >= 0:
        batch[task.swapped % len(batch)] = batch[(task.swapped + 1) % len(batch)]
    ledger = Ledger()
    ends = dict.fromkeys((Kind.REDUCE_GRAD, Kind.UNSHARD, Kind.RESHARD), _nothing)
    ends[Kind.STEP] = _Update(stages, ledger)
    peers = range(rank.ranks)
    return Duty(plan, rank.rank, peers, stages, batch, ends, task.blocking, ledger)


def _nothing(stage: int, gradients: dict[str, Tensor]) -> None:
    """With one replica there is nothing to gather or reduce."""


class _Update:
    """Adam on each weight of a stage; torch.optim would load torch's compiler into every rank."""

    def __init__(self, stages: dict[int, Stage], ledger: Ledger) -> None:
        self.stages, self.ledger = stages, ledger
        self.own = {
            number: {name: _adam(weight) for name, weight in stage.parameters.items()}
            for number, stage in stages.items()
        }

    def __call__(self, stage: int, gradients: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, gradient in gradients.items():
                own = self.own[stage][name]
                own.update(self.stages[stage].parameters[name], gradient, RATE)
                self.ledger.note(OPTIMISER, [own.momentum_P, own.variance_P])


def _adam(weight: Tensor) -> FlatAdamW:
    no_decay = torch.zeros(()).expand(weight.shape)
    return FlatAdamW(no_decay, 0.9, 0.95)


def _least(passes: list[list[float]] | None, name: str, stage: int) -> float:
    """Seconds that a pass or an end of a stage is paced to."""
    if passes is None:
        return 0.0
    kind = next(kind for kind in KINDS.values() if NAMES.get(kind, kind.value) == name)
    return passes[CODES[kind]][stage]
