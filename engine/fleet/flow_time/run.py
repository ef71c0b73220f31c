"""The driver of jobs on one machine: an order on the virtual clock, and the optimum beside it.

A job's flow time is the time from its release to its end; with preemption SRPT, which knows all
sizes, has the least sum of them, so the optimum is exact.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import Choice, Config, knob
from engine.core.events import AnyEvent, Level, Span
from engine.core.run import Live
from engine.fleet.flow_time.instances import Drawn, Instance
from engine.fleet.flow_time.orders import SAME, Chunks, Job, Order, Srpt, level

FLOWS, SHAPE = "flows", "shape"  # blobs: [2, N] flow times of the order and of the optimum; [4]


class FlowTimeConfig(Config):
    """One machine, its order, and its jobs."""

    order: Choice[Order] = knob(make=Chunks, doc="Who has the machine")
    jobs: Choice[Instance] = knob(make=Drawn, doc="What comes")
    seed: int = knob(0, "Of what is drawn", low=0, high=2**31)


def play(
    jobs: list[Job], order: Order, emit: Callable[[AnyEvent], None], clock: VirtualClock
) -> np.ndarray:
    """Flow time of each job, [N] seconds, under `order`."""
    coming, there = sorted(jobs, key=lambda job: (job.released, job.number)), list[Job]()
    next_one = 0
    while next_one < len(coming) or there:
        if not there:
            clock.time = max(clock.time, coming[next_one].released)
        while next_one < len(coming) and coming[next_one].released <= clock.time + SAME:
            there.append(coming[next_one])
            next_one += 1
        sharing, longest = order.share(there)
        least = min(job.size - job.done for job in sharing) * len(sharing)
        until = coming[next_one].released - clock.time if next_one < len(coming) else math.inf
        for_now, start = max(0.0, min(least, longest, until)), clock.time
        clock.time += for_now
        for job in sharing:
            job.done += for_now / len(sharing)
            job.attained += for_now / len(sharing)
            if for_now and len(sharing) == 1:
                name = f"operation {job.at + 1}"
                emit(Span(clock.time, f"job {job.number}", name, start))
            if job.size - job.done <= SAME:
                _next(job, clock.time)
        there = [job for job in there if math.isnan(job.ended)]
        emit(Level(clock.time, "machine", "waiting", float(len(there))))
    return np.array([job.ended - job.released for job in jobs])


def _next(job: Job, now: float) -> None:
    """An operation is done: the next one's size is known; those of nothing are done at once."""
    while job.at < len(job.operations) and job.size - job.done <= SAME:
        job.at, job.done = job.at + 1, 0.0
        if job.at == len(job.operations):
            job.ended = now
            return


def shape(jobs: list[Job]) -> tuple[int, int, int]:
    """Most operations of a job (m); most chunks of one (m1) and operations of a chunk (m2), where
    a chunk ends before the first operation of a higher class."""
    most, chunks, inside = 0, 0, 0
    for job in jobs:
        starts = [0]
        for place, size in enumerate(job.operations):
            if level(size) > level(job.operations[starts[-1]]):
                starts.append(place)
        ends = [*starts[1:], len(job.operations)]
        most, chunks = max(most, len(job.operations)), max(chunks, len(starts))
        inside = max(inside, *(b - a for a, b in zip(starts, ends, strict=True)))
    return most, chunks, inside


def run(config: FlowTimeConfig, live: Live) -> None:
    """Play the order, then the optimum on the same jobs; the flow times of both lie beside."""
    jobs = config.jobs.made(np.random.default_rng([config.seed, 11]))
    clock = VirtualClock()
    live.open(config, clock, lanes=[f"job {job.number}" for job in jobs], workers=1)
    fresh = [replace(job) for job in jobs]
    ours = play(jobs, config.order, live.emit, clock)
    best = play(fresh, Srpt(), _nobody, VirtualClock())
    live.keep(clock.time, FLOWS, np.stack([ours, best]))
    live.keep(clock.time, SHAPE, np.array(shape(fresh), np.float64))


def _nobody(event: AnyEvent) -> None:
    """Events that nobody hears."""
