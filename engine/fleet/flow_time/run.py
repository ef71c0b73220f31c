"""The driver of jobs on one machine: an order on the virtual clock, and the optimum beside it.

A job's flow time is the time from its release to its end; with preemption SRPT, which knows all
sizes, has the least sum of them, so the optimum is exact.
"""

from dataclasses import replace

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import Choice, Config, knob
from engine.core.run import Live
from engine.fleet.flow_time.instances import Drawn, Instance
from engine.fleet.flow_time.orders import Chunks, Job, Order, Srpt, level, play

FLOWS, SHAPE = "flows", "shape"  # blobs: [2, N] flow times of the order and of the optimum; [4]


class FlowTimeConfig(Config):
    """One machine, its order, and its jobs."""

    order: Choice[Order] = knob(make=Chunks, doc="Who has the machine")
    jobs: Choice[Instance] = knob(make=Drawn, doc="What comes")
    seed: int = knob(0, "Of what is drawn", low=0, high=2**31)


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
    jobs = config.jobs.against(config.order, np.random.default_rng([config.seed, 11]))
    clock = VirtualClock()
    live.open(config, clock, lanes=[f"job {job.number}" for job in jobs], workers=1)
    fresh = [replace(job) for job in jobs]
    ours = play(jobs, config.order, clock, live.emit)
    best = play(fresh, Srpt(), VirtualClock())
    live.keep(clock.time, FLOWS, np.stack([ours, best]))
    live.keep(clock.time, SHAPE, np.array(shape(fresh), np.float64))
