"""Vocabulary-parallel cross-entropy: the loss without its logits ever being whole.

Megatron-LM (arXiv 1909.08053, section 3): only a maximum, a sum and a target a token travel.
Shape letters: N tokens, V the rank's part of the vocabulary.
"""

from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function

from engine.distributed.axis import Axis
from engine.models.layers import float32_at_least


def cross_entropy(logits_NV: Tensor, targets_N: Tensor, axis: Axis) -> Tensor:
    """loss_N in nats, the same on all ranks; `targets` are ids of the whole vocabulary."""
    return cast(Tensor, _CrossEntropy.apply(logits_NV, targets_N, axis))


class _CrossEntropy(Function):
    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, targets_N: Tensor, axis: Axis) -> Tensor:
        wide_NV = float32_at_least(logits_NV)
        here_N, own_N = owned(targets_N, axis.at * wide_NV.shape[1], wide_NV.shape[1])
        peak_N = axis.all_reduce(wide_NV.max(-1).values, "vocabulary", largest=True)
        e_NV = torch.exp(wide_NV - peak_N[:, None])
        aim_N = (wide_NV.gather(-1, here_N[:, None])[:, 0] - peak_N) * own_N
        sum_N, aim_N = axis.all_reduce(torch.stack([e_NV.sum(-1), aim_N]), "vocabulary")
        ctx.save_for_backward(e_NV.div_(sum_N[:, None]), here_N, own_N)
        ctx.dtype = logits_NV.dtype
        return sum_N.log() - aim_N

    @staticmethod
    def backward(ctx: Any, dloss_N: Tensor) -> tuple[Tensor, None, None]:
        p_NV, here_N, own_N = ctx.saved_tensors
        d_NV = p_NV.clone()
        d_NV.scatter_add_(-1, here_N[:, None], -own_N[:, None].to(d_NV.dtype))
        return (d_NV * dloss_N[:, None]).to(ctx.dtype), None, None


def owned(ids_N: Tensor, first: int, size: int) -> tuple[Tensor, Tensor]:
    """(row, whether it is here) of each id among `size` rows from `first` on; row 0 where it is
    not."""
    here_N = ids_N - first
    own_N = (here_N >= 0) & (here_N < size)
    return here_N * own_N, own_N
