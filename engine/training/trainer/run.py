"""The driver of a training: here in this process, or on ranks that it watches."""

from dataclasses import replace
from typing import Any

import torch

from engine.core.clock import WallClock
from engine.core.config import to_dict
from engine.core.events import Mark, Span
from engine.core.run import Live, Stopped
from engine.distributed.faults import PeerGone, RankLost
from engine.distributed.launch import launch
from engine.distributed.merge import Merging, lane
from engine.distributed.rank import Place, Starter, join
from engine.distributed.record import Record
from engine.kernels.threads import torch_threads
from engine.training.trainer.config import TrainerConfig, on_ranks
from engine.training.trainer.ranks import STOPPED, work
from engine.training.trainer.train import fit, prepare, require_place

WHAT = "training"  # of the progress


def run(config: TrainerConfig, live: Live) -> None:
    """Train and write the model. A person's stop leaves a checkpoint and raises Stopped."""
    require_place(config)
    prepared = prepare(config)
    clock = WallClock()
    live.open(
        config, clock, data=prepared.data.said, tokens=len(prepared.training),
        fresh=prepared.fresh,
    )  # fmt: skip
    live.report(WHAT, 0, config.training.steps)
    if not config.alone:
        _on_ranks(config, live)
        return

    def poll(step: int) -> bool:
        live.report(WHAT, step, config.training.steps)
        return asked(live, clock.now())

    with torch_threads(config.threads or torch.get_num_threads()):
        fit(config, prepared, emit=live.emit, clock=clock, poll=poll)


def asked(live: Live, now: float) -> bool:
    """Whether a person wants the run to end; waits while it is paused."""
    try:
        live.poll(now)
    except Stopped:
        return True
    return False


def run_as_rank(config: TrainerConfig, live: Live, place: Place) -> None:
    """Train as the rank that torchrun made this process. The first one's events are the run's.

    Raises RankLost naming the rank that did not answer any more, BadInput as `run` does.
    """
    require_place(config)
    place_config = on_ranks(config, place.ranks)
    doing = ["starting"]
    live.open(place_config, WallClock())

    def tell(record: Record) -> None:
        for event in sorted(record.events, key=lambda event: event.time):
            live.emit(event)

    def stop() -> bool:
        return asked(live, live.log.duration)

    def say(text: str) -> None:
        doing[0] = text

    try:
        rank = join(replace(place, device=config.device), config.limit, Starter(say, tell, stop))
        work(rank, to_dict(place_config))
        rank.transport.finish()
    except PeerGone as fault:
        who = f"rank {fault.peer}" if fault.peer >= 0 else "a rank"
        told = f"{who}: lost to rank {place.rank} while {doing[0]} ({fault})"
        raise RankLost(fault.peer, told) from None
    tell(rank.record)
    if STOPPED in rank.record.arrays:
        raise Stopped


def _on_ranks(config: TrainerConfig, live: Live) -> None:
    merging = Merging(config.ranks, live.emit)
    stopping = False

    def poll() -> None:
        nonlocal stopping
        stopping = stopping or asked(live, merging.reached)

    def tell(record: Record) -> None:
        merging.take(record)
        for event in record.events:
            if isinstance(event, Span) and event.name == "steps":
                live.report(WHAT, int(event.tag.partition(":")[2]), config.training.steps)

    watched: dict[str, Any] = {"limit": config.limit, "phases": True, "poll": poll, "tell": tell}
    watched |= {"stop": lambda: stopping, "device": config.device}
    try:
        if config.ray is None:
            records = launch(work, config.ranks, to_dict(config), port=config.port, **watched)
        else:
            from engine.distributed.ray_ranks import launch_on_ray

            name = f"{work.__module__}:{work.__name__}"
            records = launch_on_ray(
                name, config.ranks, to_dict(config), address=config.ray, **watched
            )
    except RankLost as fault:
        merging.finish()
        live.emit(Mark(merging.reached, lane(fault.rank), "lost", str(fault)))
        raise
    for record in records:
        merging.take(record)
    merging.finish()
    if any(STOPPED in record.arrays for record in records):
        raise Stopped
