"""Order of preemptive jobs on one machine, by what of their sizes is known (arXiv 2602.12716), and
the machine on the virtual clock.

Each job is a sequence of operations; the size of one is known once the one before is done. Orders
that are told more (SRPT, which knows all) or less (processor sharing, least attained service) stand
beside those that are told so much.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.core.clock import VirtualClock
from engine.core.config import Policy, knob
from engine.core.events import AnyEvent, Level, Span

SAME = 1e-9  # seconds that count as none


@dataclass(slots=True, eq=False)
class Job:
    """One job. `operations`: sizes (s); an order may read those up to `at`, SRPT alone all."""

    number: int
    released: float
    operations: tuple[float, ...]
    at: int = 0  # the operation under way
    done: float = 0.0  # of that
    attained: float = 0.0  # of all
    ended: float = math.nan

    @property
    def size(self) -> float:
        """Of the operation under way: known."""
        return self.operations[self.at]

    @property
    def known(self) -> tuple[float, ...]:
        """Sizes of the operations that are done, and of the one under way."""
        return self.operations[: self.at + 1]

    @property
    def left(self) -> float:
        """Of the whole job: known to the clairvoyant alone."""
        return sum(self.operations[self.at :]) - self.done


class Order(Policy):
    """Which of the jobs that are there share the machine."""

    folder = "engine.fleet.flow_time"

    @abstractmethod
    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        """Jobs that share the machine evenly, of at least one, and for how long at most (s)."""


def first(jobs: Sequence[Job], key: Callable[[Job], tuple[float, ...]]) -> tuple[list[Job], float]:
    """The one of the least key alone, until something happens."""
    return [min(jobs, key=key)], math.inf


class Srpt(Order):
    """Shortest remaining processing time: optimal, and knows all sizes (Schrage, 1968)."""

    kind: Literal["srpt"] = "srpt"

    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        return first(jobs, lambda job: (job.left, job.number))


class OperationSrpt(Order):
    """Shortest remaining operation of those that are known."""

    kind: Literal["operation_srpt"] = "operation_srpt"
    late: bool = knob(False, "A size is known only while the operation after it runs")
    early: bool = knob(False, "A size is known while the operation before it runs")

    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        if self.late:
            return first(jobs, lambda job: (job.known[max(0, job.at - 1)], job.number))
        if self.early:
            return first(
                jobs, lambda job: (sum(job.operations[job.at :][:2]) - job.done, job.number)
            )
        return first(jobs, lambda job: (job.size - job.done, job.number))


class Chunks(Order):
    """Chunks of operations by class: the lowest first, of its class the one that has begun.

    A chunk is a run of operations of no higher class (power of two) than its first; a larger
    operation begins the next chunk. So a chunk's size is known to within the number of its
    operations as soon as it begins, though the job's is not.
    """

    kind: Literal["chunks"] = "chunks"
    grow: bool = knob(True, "A larger operation begins a chunk of its own class")

    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        return first(jobs, self._key)

    def _key(self, job: Job) -> tuple[float, ...]:
        known, begin = job.known, 0
        if self.grow:
            for place, size in enumerate(known):
                if level(size) > level(known[begin]):
                    begin = place
        begun = job.at > begin or job.done > 0
        return level(known[begin]), not begun, job.number


class FirstCome(Order):
    """Jobs one after another, as they came: knows nothing."""

    kind: Literal["first_come"] = "first_come"

    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        return first(jobs, lambda job: (job.released, job.number))


class RoundRobin(Order):
    """All jobs evenly at once (processor sharing): knows nothing."""

    kind: Literal["round_robin"] = "round_robin"

    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        return list(jobs), math.inf


class LeastAttained(Order):
    """Those that had least of the machine, evenly (foreground-background): knows nothing."""

    kind: Literal["least_attained"] = "least_attained"

    def share(self, jobs: Sequence[Job]) -> tuple[list[Job], float]:
        least = min(job.attained for job in jobs)
        level = [job for job in jobs if job.attained <= least + SAME]
        more = [job.attained for job in jobs if job.attained > least + SAME]
        return level, (min(more) - least) * len(level) if more else math.inf


def level(size: float) -> float:
    """The class of a size: the power of two that it does not pass."""
    return math.ceil(math.log2(size) - SAME) if size > 0 else -math.inf


def nobody(event: AnyEvent) -> None:
    """Events that nobody hears."""


def play(
    jobs: list[Job],
    order: Order,
    clock: VirtualClock,
    emit: Callable[[AnyEvent], None] = nobody,
    stop: float = math.inf,
) -> np.ndarray:
    """Flow time of each job, [N] seconds, under `order`; not a number where it has not ended when
    the clock shows `stop`."""
    coming, there = sorted(jobs, key=lambda job: (job.released, job.number)), list[Job]()
    next_one = 0
    while clock.time < stop and (next_one < len(coming) or there):
        if not there:
            clock.time = max(clock.time, coming[next_one].released)
        while next_one < len(coming) and coming[next_one].released <= clock.time + SAME:
            there.append(coming[next_one])
            next_one += 1
        sharing, longest = order.share(there)
        least = min(job.size - job.done for job in sharing) * len(sharing)
        until = coming[next_one].released - clock.time if next_one < len(coming) else math.inf
        for_now, start = max(0.0, min(least, longest, until, stop - clock.time)), clock.time
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
