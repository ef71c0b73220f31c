"""Local linear attention on the CPU (numba): tiles of queries over threads, matrix-free."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.kernels.lanes import LANES
from engine.kernels.linear_attention.chunks import product_address
from engine.kernels.local_linear_attention import blocks_cpu, rows
from engine.kernels.local_linear_attention.conjugate import ITERATIONS, TOLERANCE
from engine.kernels.local_linear_attention.tiles import Solver
from engine.kernels.operator import Variant


def local_linear_attention(
    q_BHTD: Tensor,
    k_BHTD: Tensor,
    v_BHTE: Tensor,
    scale: float,
    ridge: float,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Tensor:
    """As the reference, in float32."""
    wide = (x.float() for x in (q_BHTD, k_BHTD, v_BHTE))
    found: Tensor = _Attend.apply(scale, ridge, Solver(iterations, tolerance), *wide)
    return found


def _flat(x: Tensor, width: int, time: int) -> Tensor:
    """(heads, time, width), padded with zeros."""
    return pad(x, (0, width - x.shape[-1], 0, time - x.shape[-2])).flatten(0, 1).contiguous()


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scale: float, ridge: float, solver: Solver, *inputs: Tensor) -> Tensor:
        q, k, v = inputs
        (time, key), value = q.shape[-2:], v.shape[-1]
        deep, wide, keys = _padded(key), _padded(value), _padded(time)
        padded_k = _flat(k, deep, keys)
        o, z = torch.empty(len(padded_k), time, wide), torch.empty(len(padded_k), time, deep)
        given = (_flat(q, deep, time), padded_k, padded_k.mT.contiguous(), _flat(v, wide, keys))
        if time:
            rows.attend(
                product_address(),
                *(x.numpy() for x in given),
                np.float32(scale),
                np.float32(ridge),
                solver.iterations,
                np.float32(solver.tolerance**2),
                o.numpy(),
                z.numpy(),
            )
        ctx.save_for_backward(q, k, v, z[..., :key].unflatten(0, q.shape[:2]))
        ctx.told = scale, ridge, solver, blocks_cpu.QUERIES
        return o[..., :value].unflatten(0, q.shape[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, None, *blocks_cpu.gradients(ctx.saved_tensors, grads[0], *ctx.told)


VARIANT = Variant(
    name="rows_cpu",
    about="conjugate gradients in cache, a tile of queries a task; gradients by blocks_cpu",
    device="cpu",
    call=local_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=3,
    gradients=True,
)
