"""Gradient buckets: each summed over replicas while backward still makes the next.

As PyTorch DDP does (arXiv 2006.15704, section 3.2): buckets of the parameters in reverse order, for
backward makes the last ones first; all ranks begin them in the same order.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.distributed.axis import Axis, Reducing

FIRST, SIZE = 1 << 20, 25 << 20  # bytes; the first is small, so that something is on its way soon


@dataclass
class Bucket:
    """Some parameters' gradients side by side. `missing`: those backward has not made yet."""

    flat: Tensor
    parameters: list[Tensor]
    slots: list[Tensor]
    missing: set[int] = field(default_factory=set)


class Buckets:
    """Sums gradients of `parameters` over `axis`; they end up in `grad`, as views of the buckets.

    `last` false leaves the next backward's gradients to be added to, and sent by a later one.
    """

    def __init__(
        self, parameters: Sequence[Tensor], axis: Axis, first: int = FIRST, size: int = SIZE
    ) -> None:
        self.axis, self.last = axis, True
        self.buckets = [_bucket(part) for part in dealt(parameters, first, size)]
        self._of = {
            id(parameter): (bucket, place)
            for bucket in self.buckets
            for place, parameter in enumerate(bucket.parameters)
        }
        self._next, self._under_way = 0, list[Reducing]()
        self._hooks = [
            parameter.register_post_accumulate_grad_hook(self._made)
            for bucket in self.buckets
            for parameter in bucket.parameters
        ]
        self._again()

    def finish(self) -> None:
        """Wait until all sums are there; a parameter without gradient counts as nought."""
        for bucket in self.buckets[self._next :]:
            for place in bucket.missing:
                self._put(bucket, place)
            bucket.missing.clear()
        self._start()
        for reducing in self._under_way:
            reducing.wait()
        self._again()

    def close(self) -> None:
        """Take the hooks off."""
        for hook in self._hooks:
            hook.remove()

    def _made(self, parameter: Tensor) -> None:
        bucket, place = self._of[id(parameter)]
        self._put(bucket, place)
        if self.last:
            bucket.missing.discard(place)
            if not bucket.missing:
                self._start()

    def _put(self, bucket: Bucket, place: int) -> None:
        parameter, slot = bucket.parameters[place], bucket.slots[place]
        if parameter.grad is None:
            slot.zero_()
        elif parameter.grad is not slot:
            slot.copy_(parameter.grad)
        parameter.grad = slot

    def _start(self) -> None:
        while self._next < len(self.buckets) and not self.buckets[self._next].missing:
            if self.axis.size > 1:
                flat, task = self.buckets[self._next].flat, f"gradients_{self._next}"
                self._under_way.append(self.axis.start_all_reduce(flat, task))
            self._next += 1

    def _again(self) -> None:
        self._next, self._under_way = 0, []
        for bucket in self.buckets:
            bucket.missing = set(range(len(bucket.parameters)))


def dealt(parameters: Sequence[Tensor], first: int, size: int) -> list[list[Tensor]]:
    """The parameters from the last on, in runs of at most `size` bytes, the first of `first`; a
    larger parameter has a run of its own. Runs are of one dtype."""
    found: list[list[Tensor]] = []
    held, most = 0, first
    for parameter in reversed(parameters):
        fits = held + parameter.nbytes <= most
        if not found or not fits or found[-1][0].dtype != parameter.dtype:
            most = size if found else first
            found.append([])
            held = 0
        found[-1].append(parameter)
        held += parameter.nbytes
    return found


def _bucket(parameters: list[Tensor]) -> Bucket:
    size, first = sum(map(torch.Tensor.numel, parameters)), parameters[0]
    flat = torch.zeros(size, dtype=first.dtype, device=first.device)
    parts = flat.split([parameter.numel() for parameter in parameters])
    slots = [part.view_as(each) for part, each in zip(parts, parameters, strict=True)]
    return Bucket(flat, parameters, slots)
