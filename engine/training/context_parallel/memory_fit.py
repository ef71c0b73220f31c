"""Memory fit: a rank's peak bytes, counted while it runs its program on shapes alone, and the
longest sequence or largest batch within a limit.

The rank's messages are answered with shapes too, so 64 ranks need no 64 programs.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch

from engine.core.config import update
from engine.core.largest import largest_within
from engine.distributed.memory_tracker import MemoryTracker
from engine.distributed.program import Compute, Program, Receive, Send, Step, Wait, run
from engine.training.context_parallel.problem import program, shaped
from engine.training.context_parallel.split_attention import SplitAttention

T = TypeVar("T")
MOST_TOKENS, MOST_BATCH = 1 << 22, 1024  # as the config bounds them


def alone(
    program: Program[T], memory: MemoryTracker, sent: Callable[[Send], object] | None = None
) -> T:
    """Run one rank's program, its messages made up as the receives ask for them.

    `sent` is told of each message that leaves.
    """

    def take(step: Step) -> object:
        if isinstance(step, Send) and sent is not None:
            sent(step)
        if isinstance(step, Compute):
            return step.work()
        if isinstance(step, Receive):
            return [torch.empty(s.sizes, dtype=s.dtype, device="meta") for s in step.shapes]
        return step.ticket if isinstance(step, Wait) else None

    with memory:
        return run(program, take)


def peak(asked: SplitAttention, dtype: torch.dtype = torch.float32) -> int:
    """The most bytes of tensors the last rank holds, inputs and results among them."""
    piece = asked.pieces()[-1]
    own = shaped(asked, dtype)
    memory = MemoryTracker()
    memory.note(own)
    alone(program(asked, piece, own), memory)
    return memory.peak


def links(asked: SplitAttention) -> list[tuple[int, int]]:
    """Who sends to whom, as (source, target) in order."""
    found: set[tuple[int, int]] = set()
    for piece in asked.pieces():
        own = shaped(asked, torch.float32)
        alone(program(asked, piece, own), MemoryTracker(), partial(_note, found, piece.rank))
    return sorted(found)


def _note(found: set[tuple[int, int]], source: int, step: Send) -> None:
    found.add((source, step.target))


def longest(asked: SplitAttention, room: float, name: str = "tokens") -> int:
    """The largest `name` (tokens, as the layout deals them out, or batch) whose peak is within
    `room` bytes, to one part in 64; 0 where none is. Bytes are counted at every guess."""
    step = 2 * asked.ranks if name == "tokens" else 1
    most = (MOST_TOKENS if name == "tokens" else MOST_BATCH) // step

    def taken(count: int) -> int:
        return peak(update(asked, {name: count * step}))

    return step * largest_within(room, taken, most, first=8, part=64)
