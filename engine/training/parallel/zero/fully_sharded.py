"""Fully sharded data parallelism by torch's FSDP2, its collectives by our own axis.

Weights lie in shares between steps; each layer gathers its own before it runs.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from engine.distributed.axis import Axis
from engine.distributed.torch_group import device_mesh
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.zero.zero import (
    FLOAT,
    MOMENTS,
    Bytes,
    Learning,
    LocalAdamW,
    TrainedHere,
    counted,
    numbers,
)


class FullySharded(TrainedHere):
    """`again`: whether a layer gives its gathered weights back after forward, for backward to
    gather again (ZeRO-3), or keeps them until backward is done (ZeRO-2)."""

    def __init__(
        self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning, *, again: bool
    ) -> None:
        # It loads half of torch.distributed, a second in each rank that does not need it.
        from torch.distributed.fsdp import fully_shard

        super().__init__(stages, axis, learning)
        mesh = device_mesh(axis)
        for module in [part for stage in stages for part in (*stage.blocks, stage)]:
            sharded: Any = fully_shard(module, mesh=mesh, reshard_after_forward=again)
            sharded.set_custom_all_gather(_AllGather(axis))
            sharded.set_custom_reduce_scatter(_ReduceScatter(axis))
            # Sums, as everywhere here: the loss is divided by all tokens beforehand.
            sharded.set_force_sum_reduction_for_comms(True)
            sharded.set_gradient_divide_factor(1.0)
        self.optimizer = LocalAdamW(self.named, learning)

    def finish(self) -> None:
        """Nothing: the reduce-scatter of each layer ends within backward."""

    def slopes(self) -> Iterator[tuple[str, Tensor]]:
        return self.optimizer.slopes()

    def scale(self, factor: float) -> None:
        for _, slope in self.slopes():
            slope.mul_(factor)

    def gradients(self) -> dict[str, Tensor]:
        return {name: _whole(p.grad) for name, p in self.named.items() if p.grad is not None}

    def weights(self) -> dict[str, Tensor]:
        return {name: _whole(p.detach()) for name, p in self.named.items()}

    def held(self) -> Bytes:
        now = list(self.named.values())
        shares = list(self.optimizer.named.values())
        return Bytes(
            counted([*now, *shares]),
            counted([p.grad for p in shares]),
            counted(list(self.optimizer.moments().values())),
        )


def share(shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
    """What rank `at` holds after backward: rows dealt as `torch.chunk` does, all padded to the
    largest share in the weights."""
    padded = [(-(-shape[0] // ranks), *shape[1:]) for shape in shapes]
    rows = [max(0, min(s[0] - at * p[0], p[0])) for s, p in zip(shapes, padded, strict=True)]
    own = [(row, *shape[1:]) for row, shape in zip(rows, shapes, strict=True)]
    return Bytes(FLOAT * numbers(padded), FLOAT * numbers(padded), MOMENTS * FLOAT * numbers(own))


def _whole(tensor: Tensor) -> Tensor:
    found: Tensor = tensor.full_tensor()  # type: ignore[attr-defined]
    return found


class _Comm:
    def __init__(self, axis: Axis) -> None:
        self.axis = axis

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        return torch.empty(*size, dtype=dtype, device=device)


class _AllGather(_Comm):
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup,
        async_op: bool = False,
    ) -> None:  # fmt: skip
        output_tensor.copy_(
            self.axis.all_gather(input_tensor, task="weights").view_as(output_tensor)
        )


class _ReduceScatter(_Comm):
    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, op: Any,
        async_op: bool = False,
    ) -> None:  # fmt: skip
        flat = input_tensor.reshape(-1)
        output_tensor.copy_(self.axis.reduce_scatter(flat, task="gradients").view_as(output_tensor))
