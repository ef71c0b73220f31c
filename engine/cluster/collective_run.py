"""A collective as a run: time by size for every algorithm, and one of them message by message."""

from collections import defaultdict

import numpy as np

from engine.cluster.collective import CollectiveConfig, Compared, compared, played
from engine.cluster.collective_real import beside_library
from engine.cluster.pipeline_contended import USE
from engine.cluster.pipeline_events import in_time, lane
from engine.core.clock import VirtualClock
from engine.core.events import AnyEvent, Level, Mark, Move, Span
from engine.core.plot import Plot
from engine.core.run import Live
from engine.distributed.collective import Collective
from engine.distributed.flows.collective_work import carry
from engine.distributed.flows.work import Work

TIME = Plot("time by size", "tensor (B)", "time (s)", log_x=True, log_y=True)
SPEED = Plot(
    "bytes per second by size", "tensor (B)", "tensor over time (B/s)", log_x=True, log_y=True
)


def run(config: CollectiveConfig, live: Live) -> None:
    """Curves, then the messages. Raises BadInput for what does not fit."""
    chosen = played(config)
    found = compared(config)
    work = Work(config.topology())
    events, used = _messages(config, chosen, work)
    lanes = [lane(rank) for rank in range(config.ranks)]
    live.open(
        config,
        VirtualClock(),
        plots=[TIME, SPEED],
        question="Which algorithm is fastest at which size?",
        lanes=lanes,
        links=used,
    )
    for kind, seconds in found.seconds.items():
        for plot, y in ((TIME, seconds), (SPEED, found.sizes / seconds)):
            live.curve(0.0, plot, kind, np.stack([found.sizes, y]), modelled=True)
    live.emit(Mark(0.0, "plan", "crossover", in_words(found)))
    live.emit(Mark(0.0, "plan", "played", f"{chosen.kind} with {_size(config.size)} is played"))
    for event in in_time(events):
        live.emit(event)
    if config.real:
        _real(config, chosen, live)


def in_words(found: Compared) -> str:
    """Such as "fastest: one_phase up to 64 KiB, then ring"."""
    rows = [(kind.replace("_", " "), low, high) for kind, low, high in found.crossings()]
    told = [f"{kind} up to {_size(last)}" for kind, _, last in rows[:-1]]
    return f"fastest: {', then '.join([*told, rows[-1][0]])}"


def _size(size: float) -> str:
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size:.3g} B"


def _messages(
    config: CollectiveConfig, chosen: Collective, work: Work
) -> tuple[list[AnyEvent], dict[str, float]]:
    """Moves, each rank's rounds as spans, each link's use; and the links that carried anything."""
    begun = work.compute(0.0)
    plan = chosen.transfers(config.ranks, config.node())
    done = carry(work, plan, range(config.ranks), config.size, [begun] * config.ranks)
    times = work.played(uses=True)
    flat = [(n, each) for n, round in enumerate(plan.rounds) for each in round]
    events: list[AnyEvent] = []
    rows: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    adds = {}
    for (task, source, target), (number, each) in zip(done.messages, flat, strict=True):
        start, stop = float(times.start[task]), float(times.stop[task])
        tag = f"task={number}"
        events.append(Move(stop, lane(source), lane(target), work.size[task], start, tag))
        adds[number] = "reduce" if each.add else "gather"
        for rank in (source, target):
            rows[rank, number].append(task)
    for (rank, number), tasks in rows.items():
        start, stop = float(times.start[tasks].min()), float(times.stop[tasks].max())
        events.append(Span(stop, lane(rank), adds[number], start, tag=f"task={number}"))
    channels = work.topology.channels
    names = [channel.name for channel in channels]
    events += [Level(time, names[int(c)], USE, use) for time, c, use in times.uses.tolist()]
    used = np.flatnonzero(work.carried()).tolist()
    return events, {names[channel]: channels[channel].bandwidth for channel in used}


def _real(config: CollectiveConfig, chosen: Collective, live: Live) -> None:
    live.report("real ranks", 0, 0)
    (held,) = beside_library(config, [chosen]).values()
    now = live.log.duration
    live.emit(Level(now, "real ranks", "difference", held.difference))
    text = (
        f"by {config.channel.kind} on {config.ranks} real ranks: {held.difference:.2g} at most "
        "from the library's sum, "
        f"{held.sent:,} B put of {held.planned:,} B planned"
    )
    live.emit(Mark(now, "plan", "real ranks", text))
