"""Causal attention of a tensor rank's heads, over a sequence that context ranks may share.

Shape letters: B sequences, T tokens here, H query heads here, G key/value heads here, S = H / G,
D head size.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from engine.distributed.axis import Axis
from engine.training.parallel.parallelism import Parallelism
from engine.training.sequence.algorithm import Kept, SequenceAttention, Tensors
from engine.training.sequence.piece import Piece


def attend(
    parallel: Parallelism, q_BTHD: Tensor, k_BTGD: Tensor, v_BTGD: Tensor, scale: float
) -> Tensor:
    """o_BTHD; tokens are those of the context rank, in the order its spans name them."""
    B, _, H, D = q_BTHD.shape
    if parallel.context.size == 1:
        q, k, v = (x.transpose(1, 2) for x in (q_BTHD, k_BTGD, v_BTGD))
        o = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True)
        return o.transpose(1, 2)
    piece = parallel.piece(D, H * B)
    # Programs scale by the head's size; a model may ask for another factor.
    q_BGSTD = (q_BTHD * (scale / piece.scale)).unflatten(2, (k_BTGD.shape[2], -1))
    q, k, v = q_BGSTD.permute(0, 2, 3, 1, 4), k_BTGD.transpose(1, 2), v_BTGD.transpose(1, 2)
    given = (x.contiguous() for x in (q, k, v))
    o_BGSTD = cast(Tensor, _Split.apply(*given, parallel.attention, piece, parallel.context))
    return o_BGSTD.permute(0, 3, 1, 2, 4).flatten(2, 3)


class _Split(Function):
    """Attention by a program that all context ranks run, and its gradients by another."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, attention: SequenceAttention, piece: Piece,
        axis: Axis,
    ) -> Tensor:  # fmt: skip
        kept = axis.follow(attention.forward(piece, Tensors(q, k, v)))
        ctx.attention, ctx.piece, ctx.axis = attention, piece, axis
        ctx.save_for_backward(q, k, v, kept.o_BGSCD, kept.lse_BGSC, *kept.more)
        return kept.o_BGSCD

    @staticmethod
    def backward(ctx: Any, do: Tensor) -> Any:
        q, k, v, o, lse, *more = ctx.saved_tensors
        kept, own = Kept(o, lse, tuple(more)), Tensors(q, k, v)
        with torch.no_grad():
            found = ctx.axis.follow(ctx.attention.backward(ctx.piece, own, kept, do.contiguous()))
        return *found, None, None, None
