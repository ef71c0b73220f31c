"""Pipeline runtime of one rank: runs its part of a plan for real, messages by the transport.

Emits a span for every action, one for each wait on a message that was not there yet, and what is
held of each kind of memory wherever that changes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from engine.core.events import Level, Span
from engine.distributed.program import Compute, Receive, Send, Step, Wait, run
from engine.distributed.rank import Rank
from engine.distributed.transport import Arriving
from engine.training.stages.memory import BUFFERS, WEIGHTS, Ledger
from engine.training.stages.program import Done, Duty, program

WAIT = "wait"  # a span of nothing to do: views draw it as idle
SHORTEST = 2e-5  # seconds of a wait worth telling


@dataclass(frozen=True)
class Pace:
    """What a rank waits beside its work, as a stand-in for a slower device.

    `least(name, stage)`: seconds that an action takes at least; the work is done first, and what is
    left of them is slept. `stall`: seconds slept once a message is there, in no span.
    """

    least: Callable[[str, int], float] = lambda name, stage: 0.0
    stall: float = 0.0


UNPACED = Pace()


def follow(rank: Rank, duty: Duty, pace: Pace = UNPACED) -> Done:
    """One step of the plan. Raises PeerGone where a rank it talks to is gone, BadInput where the
    plan asks for what `duty` does not say how to do."""
    for stage in duty.stages.values():
        duty.ledger.note(WEIGHTS, stage.parameters.values())
    levels = _Levels(rank, duty.ledger)

    def take(step: Step) -> object:
        answer = _do(rank, duty.ledger, step, pace)
        if isinstance(step, Compute | Receive):
            levels.tell()
        return answer

    done = run(program(duty), take)
    levels.tell()
    return done


def _do(rank: Rank, ledger: Ledger, step: Step, pace: Pace) -> object:
    if isinstance(step, Receive):
        arriving = rank.transport.receive(step.source, step.shapes, step.task, blank=True)
        ledger.note(BUFFERS, [arriving.flat])
        return arriving
    start = rank.now()
    if isinstance(step, Send):
        flat = rank.transport.send(step.target, step.tensors, step.task)
        ledger.note(BUFFERS, [flat])
        rank.emit(Span(rank.now(), rank.lane, "send", start, bytes=flat.nbytes, tag=step.task))
        return None
    if isinstance(step, Wait):
        ticket: Arriving = step.ticket
        found = rank.transport.take(ticket)
        if rank.now() - start > SHORTEST:
            rank.emit(Span(rank.now(), rank.lane, WAIT, start, tag=ticket.task))
        if pace.stall > 0:
            time.sleep(pace.stall)
        return found
    rank.enter(f"{step.name} {step.task}")
    made = step.work()
    left = start + pace.least(step.name, _stage(step.task)) - rank.now()
    if left > 0:
        time.sleep(left)
    rank.emit(Span(rank.now(), rank.lane, step.name, start, step.flops, tag=step.task))
    return made


def _stage(task: str) -> int:
    return int(task.rpartition("stage=")[2])


class _Levels:
    """Tells what a rank holds, each kind where it is another than before."""

    def __init__(self, rank: Rank, ledger: Ledger) -> None:
        self.rank, self.ledger = rank, ledger
        self.told: dict[str, int] = {}

    def tell(self) -> None:
        now = self.rank.now()
        for kind, size in self.ledger.held.items():
            if self.told.get(kind, 0) != size:
                self.told[kind] = size
                self.rank.emit(Level(now, self.rank.lane, f"memory/{kind}", float(size)))
