"""Numbers rounded to a format's values without making codes: what training and simulation take."""

import torch
from torch import Tensor

from engine.kernels.quantised.formats import Format

SHRINKS = 8  # ranges that are tried, down to a quarter of the largest magnitude
EXPONENT = 0x7F800000  # the bits of a float32's exponent


def rounded(x: Tensor, of: Format) -> Tensor:
    """The format's value nearest to each float32 (ties to even); beyond its ends, the end."""
    if not of.is_float:
        return x.round().clamp(-of.largest, of.largest)
    bias = 2 ** (of.exponent - 1) - 1
    power = (x.contiguous().view(torch.int32) & EXPONENT).view(torch.float32)  # 2^floor(log2 |x|)
    step = power.clamp_min(2.0 ** (1 - bias)) * 2.0**-of.mantissa
    return ((x / step).round() * step).clamp(-of.largest, of.largest)


def even(x: Tensor, of: Format) -> Tensor:
    """As many values as the format has, spread evenly over its range: no exponent left."""
    step = 2 * of.largest / (2**of.bits - 2)
    return ((x / step).round() * step).clamp(-of.largest, of.largest)


def through(x: Tensor, of: Format, scale: Tensor) -> Tensor:
    """x in the format at that scale, its gradient as if it had not been rounded (straight-through
    estimator; Bengio et al., arXiv 1308.3432)."""
    return x + (rounded(x / scale, of) * scale - x).detach()


def scale_of(x: Tensor, of: Format, dim: int | None = None, best: bool = False) -> Tensor:
    """The scale at which the largest magnitude takes the largest value, over all or by row of
    `dim`; `best`: the one of `SHRINKS` smaller ones with the least squared error."""
    dims = tuple(range(x.ndim)) if dim is None else (dim,)
    whole = x.abs().amax(dims, keepdim=True).clamp_min(1e-12) / of.largest
    if not best:
        return whole
    least, chosen = torch.full_like(whole, torch.inf), whole
    for number in range(SHRINKS):
        scale = whole * 4 ** (-number / SHRINKS)
        error = (rounded(x / scale, of) * scale - x).square().sum(dims, keepdim=True)
        chosen = torch.where(error < least, scale, chosen)
        least = torch.minimum(error, least)
    return chosen
