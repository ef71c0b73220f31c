"""Attention of a tensor rank's heads, causal, over a sequence that context ranks may share.

Shape letters: B sequences, T tokens here, H query heads here, G key/value heads here, S = H / G,
D head size, E value size.
"""

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

from engine.distributed.axis import Axis
from engine.training.context_parallel.algorithm import Kept, SequenceAttention, Tensors
from engine.training.context_parallel.piece import Piece
from engine.training.parallel.parallelism import Parallelism
from engine.training.streamed.attention import Scores
from engine.training.streamed.attention import attend as tiled


def attend(
    parallel: Parallelism, q_BTHD: Tensor, k_BTGD: Tensor, v_BTGE: Tensor, scale: float,
    window: int = 0, cap: float = 0.0,
) -> Tensor:  # fmt: skip
    """o_BTHE; tokens are those of the context rank, in the order its spans name them. `window` and
    `cap` (0: none) are for sequences that lie on one rank."""
    if parallel.context.size > 1:
        assert not (window or cap)
        # Programs take values as wide as keys: what is added is nought and cut off again.
        width = v_BTGE.shape[-1]
        v_BTGD = F.pad(v_BTGE, (0, k_BTGD.shape[-1] - width))
        return _split(parallel, *_alike(q_BTHD, k_BTGD, v_BTGD), scale)[..., :width]
    if window or cap:
        return tiled(*_alike(q_BTHD, k_BTGD, v_BTGE), Scores(scale, window, cap))
    q, k, v = (x.transpose(1, 2) for x in (q_BTHD, k_BTGD, v_BTGE))
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True)
    return o.transpose(1, 2)


def _alike(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All three as narrow as products are taken here: torch's own attention sees to that itself."""
    kind = q.device.type
    if not (torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)):
        return q, k, v
    narrow = torch.get_autocast_dtype(kind)
    return q.to(narrow), k.to(narrow), v.to(narrow)


def _split(
    parallel: Parallelism, q_BTHD: Tensor, k_BTGD: Tensor, v_BTGD: Tensor, scale: float
) -> Tensor:
    B, _, H, D = q_BTHD.shape
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
