"""Runs a program on a real rank: its computations here and now, its messages by the transport.

Emits a span a computation and a span for each wait on a message that was not there yet, which is
the communication that work does not hide; and the bytes held.
"""

from typing import TypeVar

from engine.core.events import Level, Span
from engine.core.tags import tag
from engine.distributed.held import Held
from engine.distributed.program import Compute, Program, Receive, Send, Step, Wait
from engine.distributed.rank import Rank

T = TypeVar("T")
MEMORY = "memory/tensors"  # level of bytes alive


def follow(rank: Rank, program: Program[T], held: Held) -> T:
    """Run `program` to its end; what it returned. `held` counts its tensors, not the transport's
    copies of them on their way."""
    answer: object = None
    while True:
        with held:
            try:
                step = program.send(answer)
            except StopIteration as end:
                found: T = end.value
                return found
        answer = _do(rank, step, held)


def _do(rank: Rank, step: Step, held: Held) -> object:
    if isinstance(step, Send):
        rank.transport.send(step.target, step.tensors, step.task)
        return None
    if isinstance(step, Receive):
        return rank.transport.receive(step.source, step.shapes, step.task)
    start = rank.now()
    if isinstance(step, Wait):
        found = rank.transport.take(step.ticket)
        held.note(found)
        rank.emit(Span(rank.now(), rank.lane, "receive", start, tag=tag(task=step.ticket.task)))
        return found
    assert isinstance(step, Compute)
    with held:
        made = step.work()
    now = rank.now()
    rank.emit(
        Span(now, rank.lane, step.name, start, step.flops, step.bytes, tag=tag(task=step.task))
    )
    rank.emit(Level(now, rank.lane, MEMORY, float(held.alive)))
    return made
