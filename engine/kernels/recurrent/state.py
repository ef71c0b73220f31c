"""Recurrent state of a layer of linear attention: what is kept of a sequence, the convolution in
front of it, and the decay between the tokens of a chunk.

Shape letters: B sequences, T tokens, L tokens of a chunk, H heads, K key size, V value size, X
convolved channels, W kernel width less one.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 64  # tokens that are computed at once


class Held(NamedTuple):
    """What a layer keeps of a sequence: the last inputs of its convolution and its matrices."""

    inputs_BXW: Tensor
    matrix_BHKV: Tensor


class Decays(NamedTuple):
    """How much a chunk lets fade, each factor at most one."""

    since_BHL1: Tensor  # what was there before the chunk, at each token
    between_BHLL: Tensor  # what a token (the last axis) left, at each later one; 0 before it
    left_BHL1: Tensor  # what each token left, at the chunk's end
    whole_BH11: Tensor  # what was there before the chunk, at its end


def convolved(
    inputs_BXW: Tensor, mixed_BTX: Tensor, kernel_X1W: Tensor, bias_X: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """silu(convolution) of each token with those before it, and the inputs that are kept."""
    mixed_BXT = mixed_BTX.transpose(1, 2)
    long_BXT = torch.cat([inputs_BXW.to(mixed_BXT.dtype), mixed_BXT], dim=-1)
    kernel = kernel_X1W.to(long_BXT.dtype)
    bias = None if bias_X is None else bias_X.to(long_BXT.dtype)
    turned_BXT = F.silu(F.conv1d(long_BXT, kernel, bias, groups=len(kernel)))
    kept_BXW = long_BXT[..., long_BXT.shape[-1] - inputs_BXW.shape[-1] :]
    return turned_BXT.transpose(1, 2), kept_BXW


def decays(log_BLH: Tensor) -> Decays:
    """From the logarithm of each token's decay, at most 0, of one chunk."""
    # A sum over a chunk may be in the thousands where its differences are near zero: in float32
    # those would be wrong in the fourth place.
    sum_BHL = log_BLH.transpose(1, 2).double().cumsum(-1)
    length, like = sum_BHL.shape[-1], log_BLH.dtype
    later = torch.ones(length, length, dtype=torch.bool, device=sum_BHL.device).triu(1)
    back_BHLL = (sum_BHL[..., :, None] - sum_BHL[..., None, :]).to(like)
    last_BH1 = sum_BHL[..., -1:]
    return Decays(
        sum_BHL.to(like).exp()[..., None],
        back_BHLL.masked_fill(later, float("-inf")).exp(),
        (last_BH1 - sum_BHL).to(like).exp()[..., None],
        last_BH1.to(like).exp()[..., None],
    )


def float32_at_least(x: Tensor) -> Tensor:
    """x in float32, or in float64 where it is that."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
