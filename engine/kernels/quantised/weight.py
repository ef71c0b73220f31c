"""A quantised weight: codes of few bits, with a scale (and a zero) for each group of inputs.

Shape letters: N outputs, K inputs, G = ⌈K/group⌉ groups.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.quantised.formats import Format, format_of

SHRINKS = 8  # ranges that are tried, down to a quarter of the largest magnitude
EXPONENT = 0x7F800000  # the bits of a float32's exponent
TINY = 1e-12  # a scale of a group that is all zeros would be nought


@dataclass(frozen=True, slots=True)
class Quantised:
    """w[n, k] = scale[n, k // group] · (value of code[n, k] - zero[n, k // group]).

    `codes_NK`: uint8, below 2^bits; `scales_NG`, `zeros_NG`: float32, no zeros where None. `group`:
    inputs that share a scale, in order.
    """

    format: Format
    codes_NK: np.ndarray
    scales_NG: np.ndarray
    zeros_NG: np.ndarray | None
    group: int

    @property
    def shape(self) -> tuple[int, int]:
        """(outputs, inputs)."""
        outputs, inputs = self.codes_NK.shape
        return outputs, inputs

    def rows(self, picked: np.ndarray | slice) -> "Quantised":
        """Some of the outputs."""
        zeros = None if self.zeros_NG is None else self.zeros_NG[picked]
        codes, scales = self.codes_NK[picked], self.scales_NG[picked]
        return Quantised(self.format, codes, scales, zeros, self.group)

    def dequantised(self, dtype: torch.dtype = torch.float32) -> Tensor:
        """w_NK as plain numbers of that type."""
        values_NK = torch.from_numpy(self.format.values[self.codes_NK]).to(dtype)
        if self.zeros_NG is not None:
            values_NK -= self._spread(self.zeros_NG, dtype)
        return values_NK * self._spread(self.scales_NG, dtype)

    def _spread(self, by_group_NG: np.ndarray, dtype: torch.dtype) -> Tensor:
        wide = np.repeat(by_group_NG, self.group, axis=1)[:, : self.codes_NK.shape[1]]
        return torch.from_numpy(wide).to(dtype)

    @property
    def bits_per_weight(self) -> float:
        """With scales and zeros, 32 bits each, as they are held."""
        extra = self.scales_NG.size * (1 if self.zeros_NG is None else 2)
        return self.format.bits + 32 * extra / max(self.codes_NK.size, 1)


def nearest(values: np.ndarray, of: Format) -> np.ndarray:
    """The code whose value is nearest to each number, uint8; beyond the ends, the end."""
    table = of.values
    codes = np.flatnonzero(np.isfinite(table))
    codes = codes[np.argsort(table[codes], kind="stable")]
    held = table[codes]
    between = (held[1:] + held[:-1]) / 2
    return codes[np.searchsorted(between, values)].astype(np.uint8)


def grouped(weight_NK: np.ndarray, group: int) -> np.ndarray:
    """[N, G, group], the last group filled up with its last number."""
    short = -weight_NK.shape[1] % group
    filled = np.pad(weight_NK, ((0, 0), (0, short)), mode="edge") if short else weight_NK
    return filled.reshape(weight_NK.shape[0], -1, group)


def scales_of(
    weight_NK: np.ndarray, of: Format, group: int, zero: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Scales [N, G], and zeros where asked for, from the ends of each group.

    Without a zero the largest magnitude takes the largest code; with one, the group's ends take the
    format's ends (0 is always inside) and the zero is rounded, so that 0 is kept exactly. `ternary`
    takes the mean magnitude (BitNet b1.58, arXiv 2402.17764); `int1` stands for ± the mean
    magnitude. Raises BadInput for a zero where the format has none.
    """
    parts_NGI = grouped(np.asarray(weight_NK, np.float32), group)
    if of.name == "int1":  # codes 0 and -1 around a zero at their middle
        return np.maximum(2 * np.abs(parts_NGI).mean(2), TINY), _like(parts_NGI, -0.5)
    if zero and (of.is_float or of.name == "ternary"):
        raise BadInput(f"a zero beside {of.name}: only integers have one; leave it out")
    if of.name == "ternary":
        return np.maximum(np.abs(parts_NGI).mean(2), TINY), None
    if not zero:
        return np.maximum(np.abs(parts_NGI).max(2) / np.float32(of.largest), TINY), None
    low_NG = np.minimum(parts_NGI.min(2), 0)
    scales_NG = np.maximum((np.maximum(parts_NGI.max(2), 0) - low_NG) / (2**of.bits - 1), TINY)
    return scales_NG, np.rint(-low_NG / scales_NG) - np.float32(2 ** (of.bits - 1))


def _like(parts_NGI: np.ndarray, value: float) -> np.ndarray:
    return np.full(parts_NGI.shape[:2], value, np.float32)


def round_to_nearest(
    weight_NK: Tensor | np.ndarray, name: str, group: int = 128, zero: bool = False
) -> Quantised:
    """Each weight's nearest code, with the scales of `scales_of`; `group` 0 is a whole row."""
    w_NK = weight_NK.detach().float().numpy() if torch.is_tensor(weight_NK) else weight_NK
    w_NK = np.asarray(w_NK, np.float32)
    of, group = format_of(name), group or w_NK.shape[1]
    scales_NG, zeros_NG = scales_of(w_NK, of, group, zero)
    units_NGI = grouped(w_NK, group) / scales_NG[:, :, None]
    if zeros_NG is not None:
        units_NGI = units_NGI + zeros_NG[:, :, None]
    codes_NK = nearest(units_NGI, of).reshape(len(w_NK), -1)[:, : w_NK.shape[1]]
    return Quantised(of, np.ascontiguousarray(codes_NK), scales_NG, zeros_NG, group)


def rounded(x: Tensor, of: Format) -> Tensor:
    """The format's value nearest to each float32 (ties to even); beyond its ends, the end."""
    if not of.is_float:
        return x.round().clamp_(-of.largest, of.largest)
    bias = 2 ** (of.exponent - 1) - 1
    power = (x.contiguous().view(torch.int32) & EXPONENT).view(torch.float32)  # 2^floor(log2 |x|)
    step = power.clamp_min_(2.0 ** (1 - bias)).mul_(2.0**-of.mantissa)
    # In place where the number is our own: the next one need not be fetched into caches.
    return (x / step).round_().mul_(step).clamp_(-of.largest, of.largest)


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
        error = rounded(x / scale, of).mul_(scale).sub_(x).square_().sum(dims, keepdim=True)
        chosen = torch.where(error < least, scale, chosen)
        least = torch.minimum(error, least)
    return chosen
