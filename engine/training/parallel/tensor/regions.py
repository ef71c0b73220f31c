"""Region boundaries of tensor parallelism: all-reduce, all-gather and reduce-scatter in autograd.

The conjugate pairs of Megatron-LM (arXiv 1909.08053, section 3, f and g) and of its sequence
parallelism (arXiv 2205.05198, section 4.2.2, g and g-bar).
"""

from typing import Any, cast

from torch import Tensor
from torch.autograd import Function

from engine.distributed.axis import Axis


def enter(x: Tensor, axis: Axis, task: str = "") -> Tensor:
    """`x` as it is; backward, each rank's share of its gradient is summed."""
    return x if axis.size == 1 else cast(Tensor, _Enter.apply(x, axis, task))


def leave(x: Tensor, axis: Axis, task: str = "") -> Tensor:
    """The sum of all ranks' `x`; the gradient goes back as it is."""
    return x if axis.size == 1 else cast(Tensor, _Leave.apply(x, axis, task))


def gathered(x: Tensor, axis: Axis, dim: int, task: str = "") -> Tensor:
    """All ranks' `x` along `dim`; backward, shares of the gradient are summed and dealt."""
    return x if axis.size == 1 else cast(Tensor, _Gather.apply(x, axis, dim, task))


def scattered(x: Tensor, axis: Axis, dim: int, task: str = "") -> Tensor:
    """This rank's part along `dim` of the sum; backward, all parts' gradients are gathered."""
    return x if axis.size == 1 else cast(Tensor, _Scatter.apply(x, axis, dim, task))


class _Enter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, task: str) -> Tensor:
        ctx.axis, ctx.task = axis, task
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor, None, None]:
        return ctx.axis.all_reduce(dx, ctx.task), None, None


class _Leave(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, task: str) -> Tensor:
        return axis.all_reduce(x, task)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None]:
        return dy, None, None


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, dim: int, task: str) -> Tensor:
        ctx.axis, ctx.dim, ctx.task = axis, dim, task
        return axis.all_gather(x, dim, task)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.axis.reduce_scatter(dy, ctx.dim, ctx.task), None, None, None


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, dim: int, task: str) -> Tensor:
        ctx.axis, ctx.dim, ctx.task = axis, dim, task
        return axis.reduce_scatter(x, dim, task)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.axis.all_gather(dy, ctx.dim, ctx.task), None, None, None
