"""Mamba-2 (Dao and Gu, arXiv 2405.21060): a state space whose state is a matrix for each head.

Each token lets its head's matrix decay, adds what it brings, and reads it: token by token in
`scan`, and many at once in `scan_in_chunks`, which gives the same within rounding.
Shape letters: B sequences, T tokens, L tokens of a chunk, H heads, G groups of heads, K state size
(keys), V head size (values), X convolved channels.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.recurrent.sizes import Mamba
from engine.kernels.recurrent.state import CHUNK, Held, convolved, decays, float32_at_least

Scan = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class Projected(NamedTuple):
    """A layer's input by part, before the convolution."""

    gate_BTX: Tensor
    mixed_BTX: Tensor  # values, keys, queries
    step_BTH: Tensor


class Fixed(NamedTuple):
    """A layer's weights but its projections."""

    convolution_X1W: Tensor
    convolution_bias_X: Tensor | None
    step_bias_H: Tensor
    decay_H: Tensor
    skip_H: Tensor
    norm_X: Tensor


def projected(part: Mamba, into_BTX: Tensor) -> Projected:
    """The projection's outputs by part."""
    return Projected(*into_BTX.split([part.width, part.channels, part.heads], dim=-1))


def attended(
    part: Mamba, fixed: Fixed, said: Projected, held: Held, eps: float, scan: Scan
) -> tuple[Tensor, Held]:
    """o_BTX before the last projection, and what the sequences keep after their last token."""
    turned_BTX, kept = convolved(
        held.inputs_BXW, said.mixed_BTX, fixed.convolution_X1W, fixed.convolution_bias_X
    )
    keys = part.groups * part.state
    v, k, q = float32_at_least(turned_BTX).split([part.width, keys, keys], dim=-1)
    q, k = (_heads(part, x) for x in (q, k))
    v_BTHV = v.unflatten(-1, (part.heads, part.head))
    step_BTH = F.softplus(float32_at_least(said.step_BTH) + float32_at_least(fixed.step_bias_H))
    log_BTH = -float32_at_least(fixed.decay_H).exp() * step_BTH
    o_BTHV, matrix = scan(q, k, v_BTHV * step_BTH[..., None], log_BTH, held.matrix_BHKV)
    o_BTHV = o_BTHV + v_BTHV * float32_at_least(fixed.skip_H)[:, None]
    o_BTX = o_BTHV.flatten(-2) * F.silu(float32_at_least(said.gate_BTX))
    o_BTGX = o_BTX.unflatten(-1, (part.groups, -1))
    o_BTGX = o_BTGX * torch.rsqrt(o_BTGX.pow(2).mean(-1, keepdim=True) + eps)
    o_BTX = fixed.norm_X * o_BTGX.flatten(-2).to(fixed.norm_X.dtype)
    return o_BTX.to(said.gate_BTX.dtype), Held(kept, matrix)


def scan(
    q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_BTH: Tensor, matrix_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """o_BTHV and the matrix after the last token; `log_BTH` is the decay's logarithm."""
    found = []
    for t in range(q_BTHK.shape[1]):
        matrix_BHKV = matrix_BHKV * log_BTH[:, t, :, None, None].exp()
        matrix_BHKV = matrix_BHKV + k_BTHK[:, t, :, :, None] * v_BTHV[:, t, :, None]
        found.append((matrix_BHKV * q_BTHK[:, t, :, :, None]).sum(-2))
    return torch.stack(found, dim=1), matrix_BHKV


def scan_in_chunks(
    q_BTHK: Tensor, k_BTHK: Tensor, v_BTHV: Tensor, log_BTH: Tensor, matrix_BHKV: Tensor
) -> tuple[Tensor, Tensor]:
    """`scan`, the tokens of a chunk at once (arXiv 2405.21060, section 6)."""
    if q_BTHK.shape[1] == 1:
        return scan(q_BTHK, k_BTHK, v_BTHV, log_BTH, matrix_BHKV)
    found = []
    pieces = zip(*(x.split(CHUNK, dim=1) for x in (q_BTHK, k_BTHK, v_BTHV, log_BTH)), strict=True)
    for q_BLHK, k_BLHK, v_BLHV, log_BLH in pieces:
        fade = decays(log_BLH)
        q, k, v = (x.transpose(1, 2) for x in (q_BLHK, k_BLHK, v_BLHV))
        o_BHLV = (q @ k.mT * fade.between_BHLL) @ v + (q * fade.since_BHL1) @ matrix_BHKV
        matrix_BHKV = matrix_BHKV * fade.whole_BH11 + (k * fade.left_BHL1).mT @ v
        found.append(o_BHLV.transpose(1, 2))
    return torch.cat(found, dim=1), matrix_BHKV


def _heads(part: Mamba, x_BTX: Tensor) -> Tensor:
    """What writes or reads the state, as often as heads share it."""
    x_BTGK = x_BTX.unflatten(-1, (part.groups, part.state))
    return x_BTGK.repeat_interleave(part.heads // part.groups, dim=2)
