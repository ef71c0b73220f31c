"""Bytes that a rank's tensors take, by what they are for, each storage counted once until it goes.

Weights, gradients, optimiser, activations (what a forward leaves for its backward) and buffers
(messages on their way) are told as tensors change hands. Scratch inside an operation is not seen.
"""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

WEIGHTS, GRADIENTS, OPTIMISER = "weights", "gradients", "optimiser"
ACTIVATIONS, BUFFERS = "activations", "buffers"
KINDS = (WEIGHTS, GRADIENTS, OPTIMISER, ACTIVATIONS, BUFFERS)


class Ledger:
    """`held`: bytes of each kind now."""

    def __init__(self) -> None:
        self.held = dict.fromkeys(KINDS, 0)
        self._kind: dict[int, str] = {}

    def note(self, kind: str, tensors: Iterable[Tensor | None]) -> None:
        """These are held as `kind` from now on; weights and activations stay what they are."""
        for tensor in tensors:
            if tensor is None:
                continue
            storage = tensor.untyped_storage()
            place, size = storage._cdata, storage.nbytes()
            before = self._kind.get(place)
            if before in (WEIGHTS, ACTIVATIONS):
                continue
            if before is None:
                weakref.finalize(storage, self._gone, place, size)
            else:
                self.held[before] -= size
            self._kind[place] = kind
            self.held[kind] += size

    def saving(self) -> Any:
        """While entered, what autograd saves for a backward is noted as activations; weights,
        which it saves too, stay weights."""
        return torch.autograd.graph.saved_tensors_hooks(self._save, _same)

    def _save(self, tensor: Tensor) -> Tensor:
        self.note(ACTIVATIONS, [tensor])
        return tensor.detach()  # a node that saved its own output would never go

    def _gone(self, place: int, size: int) -> None:
        self.held[self._kind.pop(place)] -= size


def _same(tensor: Tensor) -> Tensor:
    return tensor
