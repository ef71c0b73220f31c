"""Gated delta rule (Yang et al., arXiv 2412.06464): linear attention with a state for each head.

A state is a matrix from keys to values. Each token lets it decay, then replaces what it says for
the token's key by the token's value as far as `beta` asks, then is read by the token's query:
exactly the recurrence, token by token.
Shape letters: B sequences, T tokens, C hidden, H value heads, G key heads, K key size, V value
size, X convolved channels, W kernel width less one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

EPS = 1e-6  # under the root of a key's or query's length


@dataclass(frozen=True, slots=True)
class Delta:
    """Gated delta rule (arXiv 2412.06464): linear attention whose state is a matrix for each head.

    `kernel`: width of the causal convolution before it. `by_head`: projections lie in the
    checkpoint by key head (Qwen3-Next), else by part (Qwen3.5).
    """

    key_heads: int
    value_heads: int
    key: int
    value: int
    kernel: int
    by_head: bool

    @property
    def channels(self) -> int:
        """What is convolved: queries, keys and values."""
        return 2 * self.key_heads * self.key + self.value_heads * self.value


class Held(NamedTuple):
    """What a layer keeps of a sequence: the last inputs of its convolution and its matrices."""

    inputs_BXW: Tensor
    matrix_BHKV: Tensor


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


def state_shapes(part: Delta) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Names and shapes of what a layer keeps of one sequence, all in float32."""
    return (
        ("inputs", (part.channels, part.kernel - 1)),
        ("matrix", (part.value_heads, part.key, part.value)),
    )


def projected(part: Delta, into_BTX: Tensor, rates_BTX: Tensor) -> Projected:
    """The outputs of both projections by part, whatever order the checkpoint has them in."""
    heads, values = part.value_heads, part.value_heads * part.value
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
    part: Delta, fixed: Fixed, said: Projected, held: Held, eps: float
) -> tuple[Tensor, Held]:
    """o_BTX before the last projection, and what the sequences keep after their last token."""
    mixed_BXT = said.mixed_BTX.transpose(1, 2)
    long_BXT = torch.cat([held.inputs_BXW.to(mixed_BXT.dtype), mixed_BXT], dim=-1)
    kernel = fixed.convolution_X1W.to(long_BXT.dtype)
    turned_BTX = F.silu(F.conv1d(long_BXT, kernel, groups=part.channels)).transpose(1, 2)
    keys = part.key_heads * part.key
    q, k, v = turned_BTX.split([keys, keys, part.value_heads * part.value], dim=-1)
    q, k = (_heads(part, x) for x in (q, k))
    v_BTHV = float32_at_least(v.unflatten(-1, (part.value_heads, part.value)))
    step_BTH = F.softplus(float32_at_least(said.decay_BTH) + float32_at_least(fixed.step_bias_H))
    decay_BTH = (-float32_at_least(fixed.decay_H).exp() * step_BTH).exp()
    beta_BTH = float32_at_least(said.beta_BTH.sigmoid())
    o_BTHV, matrix = recur(q * part.key**-0.5, k, v_BTHV, decay_BTH, beta_BTH, held.matrix_BHKV)
    gate = F.silu(float32_at_least(said.gate_BTHV))
    o_BTHV = o_BTHV * torch.rsqrt(o_BTHV.pow(2).mean(-1, keepdim=True) + eps)
    o_BTHV = fixed.norm_V * o_BTHV.to(fixed.norm_V.dtype) * gate
    kept = long_BXT[..., long_BXT.shape[-1] - held.inputs_BXW.shape[-1] :]
    return o_BTHV.flatten(-2).to(said.gate_BTHV.dtype), Held(kept, matrix)


def recur(
    q_BTHK: Tensor,
    k_BTHK: Tensor,
    v_BTHV: Tensor,
    decay_BTH: Tensor,
    beta_BTH: Tensor,
    matrix_BHKV: Tensor,
) -> tuple[Tensor, Tensor]:
    """o_BTHV and the matrix after the last token (arXiv 2412.06464, equation 10)."""
    found = []
    for t in range(q_BTHK.shape[1]):
        matrix_BHKV = matrix_BHKV * decay_BTH[:, t, :, None, None]
        k_BHK1 = k_BTHK[:, t, :, :, None]
        wrong_BHV = v_BTHV[:, t] - (matrix_BHKV * k_BHK1).sum(-2)
        wrong_BHV = wrong_BHV * beta_BTH[:, t, :, None]
        matrix_BHKV = matrix_BHKV + k_BHK1 * wrong_BHV[:, :, None]
        found.append((matrix_BHKV * q_BTHK[:, t, :, :, None]).sum(-2))
    return torch.stack(found, dim=1), matrix_BHKV


def _heads(part: Delta, x_BTX: Tensor) -> Tensor:
    """Query or key heads of length one, each as often as value heads share it."""
    x_BTGK = float32_at_least(x_BTX.unflatten(-1, (part.key_heads, part.key)))
    x_BTGK = x_BTGK * torch.rsqrt((x_BTGK * x_BTGK).sum(-1, keepdim=True) + EPS)
    return x_BTGK.repeat_interleave(part.value_heads // part.key_heads, dim=2)


def float32_at_least(x: Tensor) -> Tensor:
    """x in float32, or in float64 where it is that."""
    return x.to(torch.promote_types(x.dtype, torch.float32))
