"""2ˣ by range reduction and a polynomial: what multiply-add units can do for a slow special unit.

x = n + f with whole n and f in [0, 1) (Cody and Waite, 1980); 2ᶠ by a polynomial, 2ⁿ by adding n to
the exponent bits. Zadouri et al., arXiv 2603.05451, use degree 3 for a part of the exponentials.
"""

from functools import cache

import numpy as np
import torch
from torch import Tensor

LOWEST = -126.0  # below, 2ˣ is no normal float32; softmax weights there are nothing
MANTISSA = 23  # bits of a float32's fraction
OVERHEAD = 5  # clamp, round down, subtract, shift and add, beside a multiply-add for each degree


@cache
def coefficients(degree: int) -> tuple[float, ...]:
    """c₀ … of the polynomial of that degree nearest to 2ᶠ on [0, 1), by largest relative error.

    Weighted least squares on Chebyshev points, weights raised where the error is large (Lawson,
    1961), until the error is level; c₀ is 1 so that whole powers come out exact.
    """
    f = (1 - np.cos(np.linspace(0, np.pi, 400))) / 2
    truth = 2.0**f
    basis = np.stack([f**power for power in range(1, degree + 1)], axis=1) / truth[:, None]
    wanted = (truth - 1) / truth
    weights = np.ones_like(f)
    found: np.ndarray = np.zeros(degree)
    for _ in range(200):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(basis * root[:, None], wanted * root, rcond=None)[0]
        away = np.abs(basis @ found - wanted)
        weights *= away + 1e-12
        weights /= weights.sum()
    return (1.0, *found.tolist())


def exp2(x: Tensor, degree: int) -> Tensor:
    """2ˣ in float32 for x of at most 127, by the polynomial of that degree."""
    x = x.float().clamp(min=LOWEST)
    whole = x.floor()
    f = x - whole
    value = torch.full_like(f, coefficients(degree)[-1])
    for c in reversed(coefficients(degree)[:-1]):
        value = value * f + c
    bits = value.view(torch.int32) + (whole.to(torch.int32) << MANTISSA)
    return bits.view(torch.float32)


def steps(degree: int) -> int:
    """Operations of one such exponential on multiply-add and integer units."""
    return OVERHEAD + degree


def on_multiply_add(columns: int, share: float) -> Tensor:
    """Which of a block's columns take the polynomial: `share` of them, evenly spread."""
    at = torch.arange(columns, dtype=torch.float64)
    return ((at + 1) * share).floor() > (at * share).floor()
