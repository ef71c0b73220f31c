"""A rank's program: a generator of steps, written once and run on real ranks or a virtual clock.

A program yields `Compute`, `Send`, `Receive` and `Wait`; a compute step is answered with what its
work returned, a wait with the tensors of the message, the others with nothing of use.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from torch import Tensor

from engine.distributed.transport import Shape

T = TypeVar("T")
FREE: AbstractContextManager[Any] = nullcontext()


@dataclass(frozen=True, slots=True)
class Compute:
    """Do `work` now; `flops` and `bytes` of memory are what a described device would be asked."""

    name: str
    work: Callable[[], Any]
    flops: float = 0.0
    task: str = ""
    bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Send:
    """Start sending and go on."""

    target: int
    tensors: Sequence[Tensor]
    task: str = ""


@dataclass(frozen=True, slots=True)
class Receive:
    """Make room for the next message from `source` and go on; answered with a ticket."""

    source: int
    shapes: Sequence[Shape]
    task: str = ""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for the message of a ticket."""

    ticket: Any


Step: TypeAlias = Compute | Send | Receive | Wait
Program: TypeAlias = Generator[Step, Any, T]


def run(
    program: Program[T], take: Callable[[Step], Any], under: AbstractContextManager[Any] = FREE
) -> T:
    """Run `program` to its end, `take` answering each step; what it returned. Its own statements,
    between steps, run inside `under`."""
    answer: object = None
    while True:
        with under:
            try:
                step = program.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
        answer = take(step)


def through(program: Program[T], step: Callable[[Step], Generator[Step, Any, Any]]) -> Program[T]:
    """`program`, each of its steps taken by `step`, which yields it on and returns its answer."""
    answer: object = None
    while True:
        try:
            wanted = program.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = yield from step(wanted)


def shapes_of(tensors: Sequence[Tensor]) -> list[Shape]:
    """What a message of tensors like these holds."""
    return [Shape(tuple(tensor.shape), tensor.dtype) for tensor in tensors]
