"""Decode run: several steps in a row in which the same rows decode, planned and taken at once.

Under a virtual clock nothing happens within such steps but that tokens come and pages are taken, so
only their ends are worked out, each as the step alone would tell it. Whoever looks at the engine in
between has the steps taken that have ended by then, and what it finds is what single steps leave.
"""

from bisect import bisect_left
from itertools import accumulate

import numpy as np

from engine.inference.config import InferenceConfig
from engine.inference.executors.costs.modelled_executor import ModelledExecutor
from engine.inference.executors.executor import Executor
from engine.inference.outputs import OutputProcessor
from engine.inference.policies.batching.decode_first import DecodeFirst
from engine.inference.policies.ordering.fcfs import FirstComeFirstServed
from engine.inference.scheduler import Scheduler
from engine.kernels import paged_rows
from engine.kernels.compiled import settled

LONGEST = 256  # steps planned at once: most end before


class DecodeRun:
    """Steps `first` … `first` + len(ends) - 1 of an engine, which end at `ends` (seconds)."""

    def __init__(self, first: int, begin: float, seconds_K: np.ndarray) -> None:
        self.first, self.begin = first, begin
        self.ends = list(accumulate(seconds_K.tolist(), initial=begin))[1:]
        self.taken = 0

    def done(self, now: float) -> int:
        """How many of its steps have ended before `now`."""
        return bisect_left(self.ends, now)

    def shorten(self, now: float) -> bool:
        """Let the step under way be the last; False where it is already."""
        steps = self.done(now) + 1
        if steps >= len(self.ends):
            return False
        del self.ends[steps:]
        return True

    def start(self, step: int) -> float:
        """When one of its steps begins."""
        return self.ends[step - 1] if step else self.begin


class DecodeRuns:
    """Plans runs of decoding steps for one engine that tells no tokens, and takes their steps."""

    def __init__(
        self, config: InferenceConfig, executor: Executor, scheduler: Scheduler,
        outputs: OutputProcessor,
    ) -> None:  # fmt: skip
        self.config, self.executor = config, executor
        self.scheduler, self.outputs = scheduler, outputs
        self.rows, self.cache = scheduler.rows, scheduler.cache
        self._reach, self._over = settled(paged_rows.reach), settled(paged_rows.ended)
        self._ended_R = np.zeros(config.max_running, np.int64)
        self.allowed = (
            type(config.batching) is DecodeFirst
            and type(config.ordering) is FirstComeFirstServed
            and isinstance(executor, ModelledExecutor)
            and executor.drafting is None
            and scheduler.cache.pool.plain
            and not executor.facts.bytes_per_state
            and not (executor.facts.eos or config.attention_every or config.profile_every)
        )

    @property
    def full(self) -> bool:
        """Whether no request can join the batch before one leaves it."""
        return self.rows.count + self.scheduler.admission.reserved >= self.config.max_running

    def plan(self, first: int, now: float, slower: float) -> DecodeRun | None:
        """The run that begins `now` with step `first`, whose steps take `slower` times as long;
        None where the next step is of another kind."""
        scheduler, rows = self.scheduler, self.rows
        count = rows.count
        if not self.allowed or not count or count > self.config.step_tokens:
            return None
        if len(scheduler.prefill) or len(scheduler.queue) and not self.full:
            return None
        if scheduler.padded or scheduler.running.forked or rows.steers:
            return None
        allocator = scheduler.allocator
        if allocator.host.pending or allocator.copies:
            return None
        left, seen = self._reach(rows.columns, count)
        steps = min(left, LONGEST)
        while steps > 0 and not self._room(steps):
            steps //= 2
        if steps <= 0:
            return None
        assert isinstance(self.executor, ModelledExecutor)
        seconds_K = self.executor.decode_seconds(rows.cached[:count], steps, seen)
        return DecodeRun(first, now, seconds_K * slower)

    def _room(self, steps: int) -> bool:
        """Whether there are pages for so many tokens more of all rows."""
        available, size = self.cache.available, self.rows.page_size
        most = self.rows.count * (1 + (steps - 1) // size)
        return most <= available or int(self._pages(steps).sum()) <= available

    def _pages(self, steps: int) -> np.ndarray:
        """Pages that each row needs for so many tokens more."""
        rows, count = self.rows, self.rows.count
        short = rows.cached[:count] + steps - rows.filled[:count] + rows.page_size - 1
        return short // rows.page_size

    def take(self, run: DecodeRun, steps: int) -> None:
        """Let the first `steps` of a run's steps have happened."""
        rows, cache, running, looked = self.rows, self.cache, self.scheduler.running, False
        assert isinstance(self.executor, ModelledExecutor)
        while run.taken < steps:
            done, looked = running.decoded.decode(
                rows.columns, rows.count, run.first + run.taken, steps - run.taken,
                running.sharing, looked, self.executor.vocab,
            )  # fmt: skip
            run.taken += done
            cache.step = run.first + run.taken - (not looked)
            if looked:
                running.index_behind()

    def look(self, run: DecodeRun, steps: int) -> None:
        """`take`, and what the next step changes when it begins: pages and the prefix tree."""
        self.take(run, steps)
        self.cache.step = run.first + steps
        if self.cache.step % self.rows.page_size == 0:
            self.scheduler.running.index_generated()
        every = self.scheduler.every_row[: self.rows.count]
        short = np.maximum(self._pages(1), 0)
        self.scheduler.allocator.take_ahead(np.repeat(every, short))

    def finish(self, now: float) -> None:
        """The last step of a run is over: requests that have all their tokens end."""
        count = self._over(self.rows.columns, self.rows.count, self._ended_R)
        ended = self._ended_R[:count].tolist()
        for request in [self.scheduler.running.requests[row] for row in ended]:
            self.outputs.finish(request, "length", now)
