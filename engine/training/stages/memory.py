"""Memory ledger of a rank: bytes of tensors by purpose, each storage counted once until it goes.

Weights, gradients, optimiser, activations (what a forward leaves for its backward) and buffers
(messages on their way) are told as tensors change hands. Scratch inside an operation is not seen.
"""

import weakref
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

WEIGHTS, GRADIENTS, OPTIMISER = "weights", "gradients", "optimiser"
ACTIVATIONS, BUFFERS = "activations", "buffers"
KINDS = (WEIGHTS, GRADIENTS, OPTIMISER, ACTIVATIONS, BUFFERS)


class Ledger:
    """`held`: bytes of each kind now; nothing where it is not `counting`, which takes some
    microseconds for every tensor that autograd saves."""

    def __init__(self, counting: bool = True) -> None:
        self.counting = counting
        self.held = dict.fromkeys(KINDS, 0)
        self._known: dict[int, tuple[str, int, weakref.ref[Any]]] = {}  # by storage

    def note(self, kind: str, tensors: Iterable[Tensor | None]) -> None:
        """These are held as `kind` from now on; weights and activations stay what they are."""
        for tensor in tensors if self.counting else ():
            if tensor is None:
                continue
            storage = tensor.untyped_storage()
            place = storage._cdata
            known = self._known.get(place)
            if known is None:
                # Not `finalize`, which costs as much as a small operation of torch.
                ref = weakref.ref(storage, partial(self._gone, place))
                self._known[place] = (kind, storage.nbytes(), ref)
                self.held[kind] += storage.nbytes()
            elif known[0] not in (kind, WEIGHTS, ACTIVATIONS):
                before, size, ref = known
                self._known[place] = (kind, size, ref)
                self.held[before] -= size
                self.held[kind] += size

    def saving(self) -> Any:
        """While entered, what autograd saves for a backward is noted as activations; weights,
        which it saves too, stay weights."""
        if not self.counting:
            return nullcontext()
        return torch.autograd.graph.saved_tensors_hooks(self._save, _same)

    def _save(self, tensor: Tensor) -> Tensor:
        self.note(ACTIVATIONS, (tensor,))
        return tensor.detach()  # a node that saved its own output would never go

    def _gone(self, place: int, _: object) -> None:
        kind, size, _ = self._known.pop(place)
        self.held[kind] -= size


def _same(tensor: Tensor) -> Tensor:
    return tensor
