"""A training as one rank's work: its part of every step, its events, the way to stop it."""

import os
from typing import Any

import numpy as np
import torch

from engine.core.clock import Clock, WallClock
from engine.core.config import from_dict
from engine.core.events import AnyEvent
from engine.core.run import Stopped
from engine.distributed.faults import read_fault
from engine.distributed.rank import Rank
from engine.training.loop.phases import Phases
from engine.training.trainer.config import TrainerConfig
from engine.training.trainer.train import fit_on_mesh, prepare

STOPPED = "stopped"  # array of a rank that ended because it was asked to


class RankClock(WallClock):
    """The ranks' common clock."""

    def __init__(self, rank: Rank) -> None:
        super().__init__()
        self._rank = rank

    def now(self) -> float:
        return self._rank.now()


def work(rank: Rank, given: dict[str, Any]) -> None:
    """Train as one of the ranks; `given` is a TrainerConfig as plain values."""
    config = from_dict(TrainerConfig, given)
    cores = os.cpu_count() or 1
    torch.set_num_threads(config.threads or max(1, cores // rank.ranks))
    rank.enter("reading the data")
    prepared = prepare(config)
    fault = read_fault(config.fault) if config.fault else None
    clock: Clock = RankClock(rank)
    try:
        fit_on_mesh(
            config, prepared, rank, Phases(rank, config.training.report, fault), clock=clock,
            emit=rank.emit if rank.rank == 0 else _nothing,
            poll=lambda step: rank.starter.asked(),
        )  # fmt: skip
    except Stopped:
        rank.record.put(STOPPED, np.array(1))


def _nothing(event: AnyEvent) -> None:
    """The first rank tells what all of them know."""
