"""Collectives' plans on real ranks of this machine, beside the library's own."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.cluster.collective import CollectiveConfig, whole
from engine.core.errors import BadInput
from engine.distributed.collective import Collective
from engine.distributed.collective_ranks import carry_out
from engine.distributed.flows.collective_work import algorithm
from engine.distributed.launch import launch
from engine.distributed.rank import Rank

MOST = 16  # real ranks
FLOAT = 4  # bytes


@dataclass(frozen=True)
class MemoryTracker:
    """`difference`: the largest from the library's numbers, over theirs. `sent`, `planned`: bytes
    on the wire and in the plan."""

    difference: float
    sent: int
    planned: int


def beside_library(config: CollectiveConfig, chosen: list[Collective]) -> dict[str, MemoryTracker]:
    """All-reduces on `config.ranks` real ranks, by kind. Raises BadInput, RankLost among it."""
    if config.ranks > MOST:
        raise BadInput(f"ranks {config.ranks}: real ranks on one machine are for {MOST} at most")
    if config.operation != "all_reduce":
        raise BadInput(f"operation {config.operation}: real ranks do all_reduce alone")
    given = {"config": config.model_dump(), "kinds": [each.kind for each in chosen]}
    records = launch(_work, config.ranks, given, limit=config.limit)
    found = {}
    for each in chosen:
        worst = max(float(record.array(each.kind).item()) for record in records)
        halves = [h for record in records for h in record.sent if h.task.startswith(each.kind)]
        planned = sum(each.transfers(config.ranks, config.node()).sent(config.length).values())
        found[each.kind] = MemoryTracker(worst, sum(half.bytes for half in halves), FLOAT * planned)
    return found


def _work(rank: Rank, given: dict[str, Any]) -> None:
    config = CollectiveConfig(**given["config"])
    rank.enter("collective")
    x = torch.randn(config.length, generator=torch.Generator().manual_seed(rank.rank))
    summed = x.clone()
    rank.transport.group.allreduce([summed]).wait()
    for kind in given["kinds"]:
        found = carry_out(rank.transport, whole(config, algorithm(kind)), x, f"{kind}/")
        apart = (found - summed).abs().max() / summed.abs().max()
        rank.record.put(kind, np.array(float(apart)))
