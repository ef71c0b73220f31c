"""Rotary positions: frequencies from the config, cosine and sine for positions, rotation of heads.

Shape letters: T tokens, B sequences, H heads, D head size, F = rotated dimensions / 2.
"""

import math

import torch
from torch import Tensor

from engine.models.config import Rotary


def frequencies(rotary: Rotary, context: Tensor | None = None) -> Tensor:
    """Radians per position, f_F; with `context` of shape [T] (tokens of each one's sequence), f_TF.

    Only `dynamic` looks at the context: the base grows with it, so a key keeps the rotation it got
    when it was computed.
    """
    device = None if context is None else context.device
    exponent = torch.arange(0, rotary.dim, 2, device=device).float() / rotary.dim
    if rotary.kind == "dynamic" and context is not None:
        return 1.0 / _dynamic_base(rotary, context.float())[:, None] ** exponent
    plain = 1.0 / rotary.theta**exponent
    if rotary.kind == "linear":
        return plain / rotary.factor
    if rotary.kind == "proportional":
        turned_F = torch.arange(len(plain), device=device) < int(rotary.part * rotary.dim // 2)
        return plain / rotary.factor * turned_F
    if rotary.kind == "longrope":
        return plain / torch.tensor(rotary.slower, device=device)
    if rotary.kind == "llama3":
        return _llama3(rotary, plain)
    if rotary.kind == "yarn":
        return _yarn(rotary, rotary.theta**exponent)
    return plain


def _dynamic_base(rotary: Rotary, context_T: Tensor) -> Tensor:
    """NTK-aware base: grows once the context passes the pretrained positions."""
    seen = rotary.original_positions
    # 1 exactly up to the pretrained positions, however large the factor is.
    stretch = 1 + rotary.factor * (context_T.clamp(min=seen) / seen - 1)
    return rotary.theta * stretch ** (rotary.dim / (rotary.dim - 2))


def _llama3(rotary: Rotary, plain_F: Tensor) -> Tensor:
    """Long waves slowed by `factor`, short ones kept, a ramp between (Llama 3.1)."""
    wave_F = 2 * math.pi / plain_F
    low, high = rotary.low_frequency_factor, rotary.high_frequency_factor
    ramp_F = (rotary.original_positions / wave_F - low) / (high - low)
    ramp_F = ramp_F.clamp(0, 1)
    return (1 - ramp_F) * plain_F / rotary.factor + ramp_F * plain_F


def _yarn(rotary: Rotary, wave_F: Tensor) -> Tensor:
    """Interpolate slow dimensions, keep fast ones (arXiv 2309.00071, section 3.2)."""

    def dimension(turns: float) -> float:
        ratio = rotary.original_positions / (turns * 2 * math.pi)
        return rotary.dim * math.log(ratio) / (2 * math.log(rotary.theta))

    low, high = dimension(rotary.beta_fast), dimension(rotary.beta_slow)
    if rotary.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotary.dim - 1)
    steps_F = torch.arange(rotary.dim // 2, dtype=torch.float32)
    ramp_F = ((steps_F - low) / ((high - low) or 0.001)).clamp(0, 1)
    return ramp_F / (rotary.factor * wave_F) + (1 - ramp_F) / wave_F


def cos_sin(
    rotary: Rotary, frequencies_F: Tensor, positions_T: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """cos_T1F and sin_T1F, ready to broadcast over heads; computed in float32."""
    angles_TF = positions_T[:, None].float() * frequencies_F
    cos, sin = angles_TF.cos(), angles_TF.sin()
    if rotary.magnitude != 1.0:
        cos, sin = cos * rotary.magnitude, sin * rotary.magnitude
    return cos[:, None].to(dtype), sin[:, None].to(dtype)


def rotate(x_THD: Tensor, cos_T1F: Tensor, sin_T1F: Tensor, interleaved: bool) -> Tensor:
    """Rotate every head. Interleaved pairs come back as halves: harmless, as keys do the same."""
    if interleaved:
        first, second = x_THD[..., 0::2], x_THD[..., 1::2]
    else:
        first, second = x_THD.chunk(2, dim=-1)
    turned = first * cos_T1F - second * sin_T1F, second * cos_T1F + first * sin_T1F
    return torch.cat(turned, dim=-1)
