"""Collectives by put, signal and wait on real ranks of this machine, beside the library's own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engine.cluster.collective import CollectiveConfig, whole
from engine.core.config import from_dict, to_dict, update
from engine.core.errors import BadInput
from engine.distributed.channel import Channel
from engine.distributed.channels.shared_memory import carry_out
from engine.distributed.collective import Collective
from engine.distributed.flows.collective_work import algorithm
from engine.distributed.launch import launch
from engine.distributed.rank import Rank

MOST = 16  # real ranks
FLOAT = 4  # bytes


@dataclass(frozen=True)
class Held:
    """`difference`: the largest from the library's numbers, over theirs. `sent`, `planned`: bytes
    put and in the plan."""

    difference: float
    sent: int
    planned: int


def beside_library(
    config: CollectiveConfig, chosen: list[Collective], channels: Sequence[Channel] = ()
) -> dict[tuple[str, str], Held]:
    """All-reduces on `config.ranks` real ranks, by kinds of the algorithm and of the channel (the
    config's where none is named). Raises BadInput, RankLost among it."""
    if config.ranks > MOST:
        raise BadInput(f"ranks {config.ranks}: real ranks on one machine are for {MOST} at most")
    if config.operation != "all_reduce":
        raise BadInput(f"operation {config.operation}: real ranks do all_reduce alone")
    asked = [update(config, {"channel": to_dict(each)}) for each in channels] or [config]
    given = {
        "configs": [each.model_dump() for each in asked], "kinds": [each.kind for each in chosen]
    }  # fmt: skip
    records = launch(_work, config.ranks, given, limit=config.limit)
    found = {}
    for each, by in ((each, by.channel.kind) for each in chosen for by in asked):
        told = np.array([record.array(f"{each.kind}/{by}") for record in records])
        planned = sum(each.transfers(config.ranks, config.node()).sent(config.length).values())
        # What is no number at all is further off than any.
        difference = float(np.nan_to_num(told[:, 0], nan=np.inf).max())
        found[each.kind, by] = Held(difference, int(told[:, 1].sum()), FLOAT * planned)
    return found


def _work(rank: Rank, given: dict[str, Any]) -> None:
    rank.enter("collective")
    for fields in given["configs"]:
        config = from_dict(CollectiveConfig, fields)
        x = torch.randn(config.length, generator=torch.Generator().manual_seed(rank.rank))
        summed = x.clone()
        rank.transport.group.allreduce([summed]).wait()
        for kind in given["kinds"]:
            plan = whole(config, algorithm(kind))
            found, sent = carry_out(rank, plan, x, config.channel, config.fault)
            apart = (found - summed).abs().max() / summed.abs().max()
            told = np.array([float(apart), float(sent)])
            rank.record.put(f"{kind}/{config.channel.kind}", told)
