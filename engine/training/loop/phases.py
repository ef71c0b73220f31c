"""Phases of a training rank, as events for whoever watches: passes, transfers, bytes sent."""

from engine.core.events import Level, Mark, Move, Span
from engine.core.tags import tag
from engine.distributed.faults import Fault
from engine.distributed.rank import Rank

LANE = "training"  # of what the whole training tells, such as its losses
BESIDE = ("checkpoint", "validation")  # phases that passes and collectives do not tell

# What ranks enter, in this order: the first in step 0 only, the others in any.
NAMES = ("resume", "forward", "backward", "collective", "optimiser", "checkpoint",
         "checkpoint write", "validation")  # fmt: skip


class Phases:
    """Of every `report`-th step what a rank did is told; `fault` strikes where it is to."""

    def __init__(self, rank: Rank, report: int, fault: Fault | None = None) -> None:
        self._rank, self._report, self._fault = rank, report, fault
        self._phase, self._step, self._since = "", 0, 0.0
        self._sent = 0.0

    def enter(self, phase: str, step: int) -> None:
        """Begin a phase."""
        now, told = self._rank.now(), (self._step + 1) % self._report == 0
        if self._phase.startswith(BESIDE) and told:
            task = tag(task=f"step {self._step}")
            self._rank.emit(Span(now, self._rank.lane, self._phase, self._since, tag=task))
        if step != self._step or phase == "checkpoint":
            # What a checkpoint leaves behind has been told before it is written.
            self._account(now, told)
        self._phase, self._step, self._since = phase, step, now
        self._rank.enter(f"{phase} of step {step}")
        if self._fault is not None:
            self._fault.strike(self._rank.rank, phase, step)

    def go_on(self, phase: str) -> None:
        """Begin another phase of the same step."""
        self.enter(phase, self._step)

    def _account(self, now: float, told: bool) -> None:
        """Count what was sent; of most steps all but the training's own lane is forgotten."""
        rank = self._rank
        straight = sum(half.bytes for half in rank.transport.sent)
        events = rank.record.events
        summed = sum(e.bytes for e in events if isinstance(e, Move) and e.source == rank.lane)
        self._sent += straight + summed
        if told:
            rank.emit(Level(now, rank.lane, "bytes_sent", self._sent))
        else:
            rank.transport.forget()
            own = (Level, Mark, Span)
            rank.record.events = [e for e in events if isinstance(e, own) and e.lane == LANE]
        if rank.record.events:
            rank.tell()
