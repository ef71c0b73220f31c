"""Memory fit: peak bytes of activations in a step, and the longest sequence within a limit.

Tensors are counted when torch makes them and when they go, in a real step or on shapes alone: the
very program that runs then runs on torch's meta device. Weights and their gradients are not
counted, nor scratch memory inside an operation.
"""

from collections.abc import Callable
from functools import lru_cache

import torch

from engine.core.largest import largest_within
from engine.distributed.memory_tracker import MemoryTracker
from engine.models.config import ModelConfig
from engine.training.streamed.method import Method, Phase, untold
from engine.training.streamed.model import Model
from engine.training.streamed.objectives import Batch, Objective
from engine.training.streamed.problem import clear, shaped

MOST = 1 << 24  # tokens


def watched(
    method: Method, model: Model, batch: Batch, objective: Objective, phase: Phase = untold,
    told: Callable[[int], object] | None = None,
) -> tuple[float, int]:  # fmt: skip
    """(loss, bytes at most); `told` hears of bytes alive. Gradients start from zero.

    Weights and their gradients are counted, since torch's views of them are, and taken off.
    """
    clear(model.weights)
    own = [x for w in model.weights.values() for x in (w, w.grad) if x is not None]
    size = sum(tensor.nbytes for tensor in own)
    # Before the step and after it, when what was counted goes, nothing is told.
    heard: Callable[[int], object] = _nothing
    memory = MemoryTracker(lambda alive: heard(alive - size))
    memory.note(own)
    del own
    heard = told or _nothing
    with memory:
        loss = method.gradients(model, batch, objective, phase)
    heard = _nothing
    return loss, memory.peak - size


def _nothing(alive: int) -> None:
    pass


@lru_cache(maxsize=4096)  # a longest sequence is searched for by the same lengths again and again
def peak(
    model: ModelConfig, method: Method, objective: Objective, rows: int, length: int, tile: int,
    dtype: torch.dtype = torch.float32,
) -> int:  # fmt: skip
    """Bytes at most for `rows` sequences of `length` tokens, counted on shapes."""
    made, batch = shaped(model, rows, length, tile, dtype)
    return watched(method, made, batch, objective)[1]


def longest(
    model: ModelConfig, method: Method, objective: Objective, rows: int, tile: int, room: float,
    dtype: torch.dtype = torch.float32,
) -> int:  # fmt: skip
    """The longest sequence whose peak is within `room` bytes, to one part in 128; 0 where none is.
    Bytes are counted at every guess."""

    def taken(length: int) -> int:
        return peak(model, method, objective, rows, length, tile, dtype)

    return largest_within(room, taken, MOST, first=256, part=128)
