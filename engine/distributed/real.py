"""Runs a program on a real rank: its computations here and now, its messages by the transport.

Emits a span a computation and a span for each wait on a message that was not there yet, which is
the communication that work does not hide; and, where they are tracked, the bytes held.
"""

from collections.abc import Callable
from typing import TypeVar

from engine.core.events import AnyEvent, Level, Span
from engine.core.tags import tag
from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.program import FREE, Compute, Program, Receive, Send, Step, Wait, run
from engine.distributed.rank import Rank

T = TypeVar("T")
Told = Callable[[str, Compute, object, float, float], list[AnyEvent]]
MEMORY = "memory/tensors"  # level of bytes alive


def spans(lane: str, step: Compute, answer: object, start: float, now: float) -> list[AnyEvent]:
    """What a computation leaves in the log: its span."""
    return [Span(now, lane, step.name, start, step.flops, step.bytes, tag=tag(task=step.task))]


def follow(
    rank: Rank, program: Program[T], memory: MemoryTracker | None = None, told: Told = spans
) -> T:
    """Run `program` to its end; what it returned. `memory` counts its tensors, not the transport's
    copies of them on their way; `told`: the events of a computation."""
    return run(program, lambda step: _do(rank, step, memory, told), memory or FREE)


def _do(rank: Rank, step: Step, memory: MemoryTracker | None, told: Told) -> object:
    if isinstance(step, Send):
        rank.transport.send(step.target, step.tensors, step.task)
        return None
    if isinstance(step, Receive):
        return rank.transport.receive(step.source, step.shapes, step.task)
    start = rank.now()
    if isinstance(step, Wait):
        tensors = rank.transport.take(step.ticket)
        if memory is not None:
            memory.note(tensors)
        rank.emit(Span(rank.now(), rank.lane, "receive", start, tag=tag(task=step.ticket.task)))
        return tensors
    rank.enter(step.name)
    with memory or FREE:
        answer = step.work()
    now = rank.now()
    for event in told(rank.lane, step, answer, start, now):
        rank.emit(event)
    if memory is not None:
        rank.emit(Level(now, rank.lane, MEMORY, float(memory.alive)))
    return answer
