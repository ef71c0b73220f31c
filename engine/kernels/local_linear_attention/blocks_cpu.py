"""Local linear attention on the CPU, a tile of queries after another, matrix-free (torch)."""

from typing import Any

import torch
from torch import Tensor

from engine.kernels.local_linear_attention.conjugate import ITERATIONS, TOLERANCE
from engine.kernels.local_linear_attention.tiles import Solver, backward, forward, tile
from engine.kernels.operator import Variant

QUERIES = 64  # of one tile


def local_linear_attention(
    q_BHTD: Tensor,
    k_BHTD: Tensor,
    v_BHTE: Tensor,
    scale: float,
    ridge: float,
    solver: Solver | None = None,
    queries: int = QUERIES,
) -> Tensor:
    """As the reference, in float32; holds `queries` rows of weights a head, no D × D matrix."""
    wide = (x.float() for x in (q_BHTD, k_BHTD, v_BHTE))
    chosen = solver or Solver(ITERATIONS, TOLERANCE)
    found: Tensor = _Attend.apply(scale, ridge, chosen, queries, *wide)
    return found


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scale: float, ridge: float, solver: Solver, queries: int, *inputs: Tensor
    ) -> Tensor:
        q, k, v = inputs
        o, z = torch.empty(*q.shape[:-1], v.shape[-1], device=q.device), torch.empty_like(q)
        for first in range(0, q.shape[2], queries):
            cut = slice(first, first + queries)
            seen = slice(0, min(first + queries, q.shape[2]))
            given = tile(q[:, :, cut], k[:, :, seen], first, scale, ridge, solver)
            o[:, :, cut], z[:, :, cut] = forward(given, v[:, :, seen])
        ctx.save_for_backward(q, k, v, z)
        ctx.told = scale, ridge, solver, queries
        return o

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        return None, None, None, None, *gradients(ctx.saved_tensors, grads[0], *ctx.told)


def gradients(
    saved: tuple[Tensor, ...], do: Tensor, scale: float, ridge: float, solver: Solver, queries: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of q, k and v, tile by tile, from q, k, v and the forward pass's solutions z."""
    q, k, v, z = saved
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for first in range(0, q.shape[2], queries):
        cut = slice(first, first + queries)
        seen = slice(0, min(first + queries, q.shape[2]))
        given = tile(q[:, :, cut], k[:, :, seen], first, scale, ridge, solver)
        part = backward(given, v[:, :, seen], z[:, :, cut], do[:, :, cut])
        dq[:, :, cut] = part[0]
        dk[:, :, seen] += part[1]
        dv[:, :, seen] += part[2]
    return dq, dk, dv


VARIANT = Variant(
    name="blocks_cpu",
    about="conjugate gradients over a tile of queries, matrix-free",
    device="cpu",
    call=local_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    gradients=True,
)
