"""Attention offloading on processes of this machine: rank 0 serves, the other ranks attend."""

import time
from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from engine.core.config import update
from engine.core.events import Opened
from engine.core.run import Live, Run
from engine.distributed.launch import launch
from engine.distributed.merge import merged
from engine.distributed.rank import Rank
from engine.distributed.transport import Shape
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Built
from engine.inference.executors.offloaded import OffloadedHere
from engine.inference.executors.tensors.offloaded_attention import (
    END,
    attend,
    compute_executor,
    header,
    shared,
)
from engine.inference.executors.tensors.real_executor import tokenizer_of
from engine.inference.run import run as run_here
from engine.inference.run import run_on
from engine.models.loading.find import find

HELD = "held"  # bytes of the cache that a rank which attends keeps


def run(config: InferenceConfig, live: Live) -> None:
    """Serve the workload: on several processes where the executor asks for them, else as ever."""
    executor = config.executor
    if not isinstance(executor, OffloadedHere):
        run_here(config, live)
        return
    ranks = 1 + executor.workers
    live.report(f"{ranks} processes serve", 0, 0)
    records = launch(work, ranks, config, limit=executor.limit, poll=lambda: live.poll(0.0))
    for event in merged(records):
        if isinstance(event, Opened):
            live.open(config, RankClock(None), **event.facts)
        else:
            live.emit(event)
    for name in records[0].arrays:
        live.log.blobs[name] = records[0].array(name)
    live.log.blobs[HELD] = np.array([record.array(HELD) for record in records[1:]])


def work(rank: Rank, config: InferenceConfig) -> None:
    """One process from beginning to end."""
    assert isinstance(config.executor, OffloadedHere)
    workers, found = config.executor.workers, find(config.model)
    if rank.rank:
        rank.enter("attention")
        own, dtype = shared(found.config, workers), config.dtype
        size, fault = (config.pages, config.page_size), config.executor.fault
        held = attend(own, dtype, *size, RankChannel(rank, 0), fault)
        rank.record.put(HELD, np.array(held))
        return
    rank.enter("serving")
    model = found.open(config.dtype, random=found.folder is None, seed=config.seed)
    channels = [RankChannel(rank, other) for other in range(1, rank.ranks)]
    executor = compute_executor(config, update(config, {"pages": 1}), model, channels)
    built = Built(executor, RankClock(rank), tokenizer_of(found.folder))
    log = Run.execute(lambda one, live: run_on(one, built, live), config).log
    for channel in channels:
        channel.send([header(END)], "end")
    rank.record.events = list(log)[:-1]
    for name, array in log.blobs.items():
        rank.record.put(name, array)


class RankChannel:
    """The way from one rank to another."""

    def __init__(self, rank: Rank, other: int) -> None:
        self.transport, self.other = rank.transport, other

    def send(self, tensors: Sequence[Tensor], task: str) -> None:
        self.transport.send(self.other, tensors, task)

    def receive(
        self, shapes: Sequence[tuple[tuple[int, ...], torch.dtype]], task: str
    ) -> list[Tensor]:
        wanted = [Shape(sizes, number) for sizes, number in shapes]
        return self.transport.take(self.transport.receive(self.other, wanted, task))


class RankClock:
    """The ranks' common clock; without a rank, of a run that is over."""

    name: Literal["wall", "virtual"] = "wall"

    def __init__(self, rank: Rank | None) -> None:
        self.rank = rank

    def now(self) -> float:
        return self.rank.now() if self.rank else 0.0

    def wait_until(self, moment: float) -> None:
        time.sleep(max(0.0, moment - self.now()))
