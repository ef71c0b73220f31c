"""A training as one rank's work: its part of every step, its events, the way to stop it."""

import json
import os
from typing import Any

import numpy as np
import torch

from engine.core.clock import Clock, WallClock
from engine.core.config import from_dict, to_dict
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.core.run import Stopped
from engine.distributed.faults import read_fault
from engine.distributed.rank import Rank
from engine.training.loop.checkpoint import Facts
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
    settings = {**to_dict(config.training), "parallel": json.dumps(to_dict(config.parallel))}
    agreed(rank, {**settings, **prepared.origin()})
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


def agreed(rank: Rank, facts: Facts) -> None:
    """Raises BadInput where another rank, as each machine may start its own, has other facts: the
    replicas would part without a word."""
    first = rank.meeting.store.compare_set("settings", "", json.dumps(dict(facts)))
    theirs = json.loads(first)
    for name, ours in facts.items():
        if theirs.get(name) != ours:
            raise BadInput(
                f"rank {rank.rank}: has {name} = {ours}, another rank has {theirs.get(name)}; "
                "start all with the same"
            )


def _nothing(event: AnyEvent) -> None:
    """The first rank tells what all of them know."""
