"""Gated delta rule (Yang et al., arXiv 2412.06464): linear attention with a state for each head.

A state is a matrix from keys to values. Each token lets it decay, then replaces what it says for
the token's key by the token's value as far as `beta` asks, then is read by the token's query:
token by token in `recur`, and many at once in `recur_in_chunks`, which gives the same within
rounding.
Shape letters: B sequences, T tokens, L tokens of a chunk, H value heads, G key heads, K key size,
V value size, X convolved channels, W kernel width less one.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.kernels.recurrent.sizes import Delta
from engine.kernels.recurrent.state import CHUNK, Held, convolved, decays, float32_at_least

EPS = 1e-6  # under the root of a key's or query's length
Recur = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


class Projected(NamedTuple):
    """A layer's input by part, before the convolution."""

    mixed_BTX: Tensor  # queries, keys, values
    gate_BTHV: Tensor
    beta_BTH: Tensor
    decay_BTH: Tensor  # of the logarithm of the decay, before its step


class Fixed(NamedTuple):
    """A layer's weights but its projections."""

    convolution_X1W: Tensor
    step_bias_H: Tensor
    decay_H: Tensor
    norm_V: Tensor


def projected(part: Delta, into_BTX: Tensor, rates_BTX: Tensor) -> Projected:
    """The outputs of both projections by part, whatever order the checkpoint has them in."""
    heads, values = part.value_heads, part.width
    if not part.by_head:
        mixed, gate = into_BTX.split([part.channels, values], dim=-1)
        beta, decay = rates_BTX.split([heads, heads], dim=-1)
        return Projected(mixed, gate.unflatten(-1, (heads, part.value)), beta, decay)
    each = heads // part.key_heads
    sizes = [part.key, part.key, each * part.value, each * part.value]
    pieces = into_BTX.unflatten(-1, (part.key_heads, -1)).split(sizes, dim=-1)
    beta, decay = rates_BTX.unflatten(-1, (part.key_heads, -1)).split([each, each], dim=-1)
    mixed = torch.cat([piece.flatten(-2) for piece in pieces[:3]], dim=-1)
    gate = pieces[3].flatten(-2).unflatten(-1, (heads, part.value))
    return Projected(mixed, gate, beta.flatten(-2), decay.flatten(-2))


def attended(
    part: Delta, fixed: Fixed, said: Projected, held: Held, eps: float, recur: Recur
) -> tuple[Tensor, Held]:
    """o_BTX before the last projection, and what the sequences keep after their last token."""
    turned_BTX, kept = convolved(held.inputs_BXW, said.mixed_BTX, fixed.convolution_X1W)
    keys = part.key_heads * part.key
    q, k, v = turned_BTX.split([keys, keys, part.width], dim=-1)
    q, k = (_heads(part, x) for x in (q, k))
    v_BTHV = float32_at_least(v.unflatten(-1, (part.value_heads, part.value)))
    step_BTH = F.softplus(float32_at_least(said.decay_BTH) + float32_at_least(fixed.step_bias_H))
    log_BTH = -float32_at_least(fixed.decay_H).exp() * step_BTH
    beta_BTH = float32_at_least(said.beta_BTH.sigmoid())
    o_BTHV, matrix = recur(q * part.key**-0.5, k, v_BTHV, log_BTH, beta_BTH, held.matrix_BHKV)
    gate = F.silu(float32_at_least(said.gate_BTHV))
    o_BTHV = o_BTHV * torch.rsqrt(o_BTHV.pow(2).mean(-1, keepdim=True) + eps)
    o_BTHV = fixed.norm_V * o_BTHV.to(fixed.norm_V.dtype) * gate
    return o_BTHV.flatten(-2).to(said.gate_BTHV.dtype), Held(kept, matrix)


def recur(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    log_BTH: Tensor,
    beta_BTH: Tensor,
    matrix_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    """o_BTHV and the matrix after the last token (arXiv 2412.06464, equation 10); `log_BTH` is the
    decay's logarithm."""
    found = []
    for t in range(q_BTHK.shape[1]):
        matrix_BHKV = matrix_BHKV * log_BTH[:, t, :, None, None].exp()
        k_BHK1 = k_BTHK[:, t, :, :, None]
        wrong_BHV = v_BTHV[:, t] - (matrix_BHKV * k_BHK1).sum(-2)
        wrong_BHV = wrong_BHV * beta_BTH[:, t, :, None]
        matrix_BHKV = matrix_BHKV + k_BHK1 * wrong_BHV[:, :, None]
        found.append((matrix_BHKV * q_BTHK[:, t, :, :, None]).sum(-2))
    return torch.stack(found, dim=1), matrix_BHKV


def recur_in_chunks(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    log_BTH: Tensor,
    beta_BTH: Tensor,
    matrix_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    """`recur`, the tokens of a chunk at once: what each of them replaces is the solution of one
    triangular system (arXiv 2412.06464, section 3.3)."""
    given = (q_BTHK, k_BTHK, v_BTHV, log_BTH, beta_BTH)
    if q_BTHK.shape[1] == 1:
        return recur(*given, matrix_BHKV)
    found = []
    for q, k, v, log_BLH, beta_BLH in zip(*(x.split(CHUNK, dim=1) for x in given), strict=True):
        fade = decays(log_BLH)
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        beta_BHL1 = beta_BLH.transpose(1, 2)[..., None]
        system_BHLL = k * beta_BHL1 @ k.mT * fade.between_BHLL  # its diagonal counts as ones
        wrong_BHLV = v - k * fade.since_BHL1 @ matrix_BHKV
        wrong_BHLV = torch.linalg.solve_triangular(
            system_BHLL, beta_BHL1 * wrong_BHLV, upper=False, unitriangular=True
        )
        o_BHLV = (q @ k.mT * fade.between_BHLL) @ wrong_BHLV + q * fade.since_BHL1 @ matrix_BHKV
        matrix_BHKV = matrix_BHKV * fade.whole_BH11 + (k * fade.left_BHL1).mT @ wrong_BHLV
        found.append(o_BHLV.transpose(1, 2))
    return torch.cat(found, dim=1), matrix_BHKV


def _heads(part: Delta, x_BTX: Tensor) -> Tensor:
    """Query or key heads of length one, each as often as value heads share it."""
    x_BTGK = float32_at_least(x_BTX.unflatten(-1, (part.key_heads, part.key)))
    x_BTGK = x_BTGK * torch.rsqrt((x_BTGK * x_BTGK).sum(-1, keepdim=True) + EPS)
    return x_BTGK.repeat_interleave(part.value_heads // part.key_heads, dim=2)
