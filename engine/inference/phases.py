"""Phases side by side: a prefill and a decode step of one engine under way at once on one device.

Whenever a step begins or ends the policy splits the compute units anew, and what is left of the
steps under way goes on at the speed that they then have.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from engine.core.errors import BadInput
from engine.core.events import Level
from engine.hardware.split_device import Work, side_by_side
from engine.inference.engine import Begun, Engine
from engine.inference.executors.costs.measured_step_cost import MeasuredCost
from engine.inference.executors.costs.modelled_executor import ModelledExecutor
from engine.inference.executors.costs.step_cost import StepCost
from engine.inference.policies.batching.side_by_side import Seen, SideBySide
from engine.inference.policies.policy import Phase
from engine.inference.requests.request import Request
from engine.inference.requests.step import Step

PHASES: tuple[Phase, Phase] = ("prefill", "decode")
Working = Callable[[Step, float], Work]  # of a step and its seconds alone on the device


def phases(engine: Engine) -> "Phases | None":
    """The two phases of an engine that has them side by side; elsewhere they are not modelled, and
    take turns. Raises BadInput."""
    config, executor = engine.config, engine.executor
    if not isinstance(config.batching, SideBySide) or not isinstance(executor, ModelledExecutor):
        return None
    if not isinstance(executor.cost, (StepCost, MeasuredCost)):
        raise BadInput(
            "batching: the units of one device are split, not those of several ranks; choose one "
            "rank, or a batching policy that splits none"
        )
    if config.speculation.drafts:
        raise BadInput(
            "batching: phases side by side verify no drafts; leave speculation out, or choose "
            "another batching policy"
        )
    return Phases(engine, config.batching, partial(work_of, executor))


def work_of(executor: ModelledExecutor, step: Step, seconds: float) -> Work:
    """A step that takes `seconds` alone. The roof that binds an operation takes all its time, so
    that what it loses to launches and tiles stays with it."""
    cost, found = executor.cost, executor.describe(step)
    assert isinstance(cost, (StepCost, MeasuredCost))
    plain = cost.plain if isinstance(cost, MeasuredCost) else cost
    told_O = np.array([op.seconds for op in found])
    computing_O = np.array([op.flops for op in found]) / plain.compute
    reading_O = np.array([op.bytes for op in found]) / plain.memory
    bound_O = computing_O >= reading_O
    return Work(
        np.where(bound_O, told_O, np.minimum(computing_O, told_O)),
        np.where(bound_O, np.minimum(reading_O, told_O), told_O),
        max(0.0, seconds - float(told_O.sum())),
    )


@dataclass
class UnderWay:
    """A step that has begun, who is in it, and how long it takes at the present speed."""

    begun: Begun
    rows: list[Request]  # by sequence
    samples: list[Request]
    work: Work
    left: float = 1.0  # of it
    seconds: float = 0.0  # of all of it

    def arrived(self) -> Begun:
        """The step as it ends: rows may have moved meanwhile, and requests been aborted."""
        step, result = self.begun.step, self.begun.result
        rows_B = np.array([request.row for request in self.rows], np.int64)
        rows_S = np.array([request.row for request in self.samples], np.int64)
        here_B, here_S = rows_B >= 0, rows_S >= 0
        step = replace(
            step, whole=False, rows_B=rows_B[here_B], starts_B=step.starts_B[here_B],
            queries_B=step.queries_B[here_B], sample_rows_S=rows_S[here_S],
            decodes=int(np.count_nonzero(here_B[: step.decodes])),
        )  # fmt: skip
        tokens_S, logprobs_S = result.tokens_S[here_S], result.logprobs_S[here_S]
        result = replace(result, tokens_S=tokens_S, logprobs_S=logprobs_S)
        return self.begun._replace(step=step, result=result)


class Phases:
    """Steps an engine in two phases. Call `step` as one would the engine's."""

    def __init__(self, engine: Engine, how: SideBySide, work: Working) -> None:
        self.engine, self.how, self.work = engine, how, work
        self.share = 0.0  # of the units that prefill has
        self.under_way: list[UnderWay | None] = [None, None]
        self.took = 0.0  # seconds of the last decode step, as a clock tells

    def step(self, until: float = np.inf) -> bool:
        """Begin what can begin; go on until a step ends, or `until`. False: there is nothing."""
        for n in range(len(PHASES)):
            if self.under_way[n] is None:
                self._begin(n)
        self._split()
        now = self.engine.clock.now()
        ends = [(now + one.left * one.seconds, n) for n, one in enumerate(self.under_way) if one]
        if not ends:
            return False
        moment, which = min(ends)
        if until < moment:
            self._pass(until - now)
            return True
        self._pass(moment - now)
        ended, self.under_way[which] = self.under_way[which], None
        assert ended is not None
        if PHASES[which] == "decode":
            self.took = moment - ended.begun.start
        self.engine.end(ended.arrived())
        return True

    def _begin(self, n: int) -> None:
        engine, scheduler, other = self.engine, self.engine.scheduler, self.under_way[1 - n]
        scheduler.away = set() if other is None else {*other.rows, *other.samples}
        engine.hear()
        if PHASES[n] == "prefill" and not (len(scheduler.queue) or len(scheduler.prefill)):
            return
        scheduler.phase = PHASES[n]
        begun = engine.begin()
        if begun is None:
            return
        step, requests = begun.step, scheduler.running.requests
        self.under_way[n] = UnderWay(
            begun._replace(lane=PHASES[n]),
            [requests[row] for row in step.rows_B.tolist()],
            [requests[row] for row in step.sample_rows_S.tolist()],
            self.work(step, begun.result.seconds),
        )

    def _pass(self, seconds: float) -> None:
        clock = self.engine.clock
        clock.wait_until(clock.now() + seconds)
        for one in self.under_way:
            if one is not None:
                one.left = max(0.0, one.left - seconds / one.seconds)

    def _split(self) -> None:
        """Choose the split for what is under way, and how fast that goes on."""
        cache, now = self.engine.cache, self.engine.clock.now()
        prefill, decode = (None if one is None else one.work for one in self.under_way)
        filled = 1.0 - cache.available / self.engine.config.pages
        share = self.how.split((prefill, decode), Seen(self.share, filled, self.took))
        if share != self.share:
            self.share = share
            self.engine.emit(Level(now, "engine", "prefill_share", share))
        both = side_by_side((prefill, decode), share, self.how.reach)
        for one, seconds in zip(self.under_way, both, strict=True):
            if one is not None:
                one.seconds = seconds
