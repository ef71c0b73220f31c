"""What fits a rank's memory: bytes counted while one rank runs its program on shapes alone.

The rank's messages are answered with shapes too, so 64 ranks need no 64 programs.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import torch

from engine.core.config import update
from engine.distributed.held import Held
from engine.distributed.program import Compute, Program, Receive, Send, Wait
from engine.training.context_parallel.config import SequenceConfig
from engine.training.context_parallel.problem import program, shaped

T = TypeVar("T")
MOST_TOKENS, MOST_BATCH = 1 << 22, 1024  # as the config bounds them


def alone(given: Program[T], held: Held, sent: Callable[[Send], object] | None = None) -> T:
    """Run one rank's program, its messages made up as the receives ask for them.

    `sent` is told of each message that leaves.
    """
    answer: object = None
    with held:
        while True:
            try:
                step = given.send(answer)
            except StopIteration as end:
                found: T = end.value
                return found
            if isinstance(step, Send) and sent is not None:
                sent(step)
            if isinstance(step, Compute):
                answer = step.work()
            elif isinstance(step, Receive):
                answer = [torch.empty(s.sizes, dtype=s.dtype, device="meta") for s in step.shapes]
            else:
                answer = step.ticket if isinstance(step, Wait) else None


def peak(config: SequenceConfig, dtype: torch.dtype = torch.float32) -> int:
    """The most bytes of tensors the last rank holds, inputs and results among them."""
    piece = config.pieces()[-1]
    own = shaped(config, dtype)
    held = Held()
    held.note(own)
    alone(program(config, piece, own), held)
    return held.peak


def links(config: SequenceConfig) -> list[tuple[int, int]]:
    """Who sends to whom, as (source, target) in order."""
    found: set[tuple[int, int]] = set()
    for piece in config.pieces():
        own = shaped(config, torch.float32)
        alone(program(config, piece, own), Held(), partial(_note, found, piece.rank))
    return sorted(found)


def _note(found: set[tuple[int, int]], source: int, step: Send) -> None:
    found.add((source, step.target))


def longest(config: SequenceConfig, room: float, name: str = "tokens") -> int:
    """The largest `name` (tokens, as the layout deals them out, or batch) whose peak is within
    `room` bytes, to one part in 64; 0 where none is.

    Bytes grow about as a power of it, so each guess goes along the last slope; all are counted.
    """
    step = 2 * config.ranks if name == "tokens" else 1
    most = (MOST_TOKENS if name == "tokens" else MOST_BATCH) // step

    def taken(count: int) -> int:
        return peak(update(config, {name: count * step}))

    low, high = 0, most + 1  # what fits, and what does not
    tried, power, guess = (0, 0.0), 1.0, min(most, 8)
    while high - low > max(1, low // 64):
        size = taken(guess)
        low, high = (guess, high) if size <= room else (low, guess)
        if tried[0] and tried[0] != guess:
            power = math.log(size / tried[1]) / math.log(guess / tried[0])
        tried = (guess, float(size))
        aim = guess * (room / size) ** (1 / max(power, 0.5))
        # A little beside the aim closes the other side of the bracket.
        aim = aim * 1.008 if guess == low else aim * 0.992
        inside = low < aim < high
        guess = int(aim) if inside and int(aim) > low else (low + high) // 2
    return low * step
