"""Binary codes with scales that are powers of two: a layer's weights as sums of ± shifts.

You et al., ShiftAddLLM, arXiv 2406.05981: w = Σ_b α_b s_b with signs s of each weight, and scales α
of a block of columns and a part of the rows, each a sum of few powers of two. Scales and signs are
fitted to the weights in turns (Xu et al., arXiv 1802.00150); columns that are left take over what a
column errs, as GPTQ has it, so that outputs are fitted too.
Shape letters: N outputs, K inputs, R parts of the rows, J blocks of columns, B bits, T terms of a
scale, L levels, I weights that share a scale.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.kernels.quantised.lookup import SIGN, WIDTH
from engine.training.quantisation.rounded_model import Fit, compensated, nearest

ROUNDS = 4  # of fitting scales and signs in turns
TERM_BITS = 8  # that a power of two and its sign take
HALF_BITS = 16  # of a scale that is any number
ABSENT = -512  # the exponent of a term that is not there: nothing is left of what it shifts


class Powers(NamedTuple):
    """Scales [R, B]; each the sum of T terms [R, B, T]: an exponent, and a sign or nought."""

    scales_RB: Tensor
    exponents_RBT: Tensor
    signs_RBT: Tensor


@dataclass(frozen=True, slots=True)
class BinaryCodes:
    """w[n, k] = Σ_b s_b[n, k] · α_b[part of n, k // columns].

    `codes_NK`: uint8, bit b says that s_b is 1 and not -1. `exponents`, `signs`: int32
    [B, T, R, J]; α is the sum of its terms sign · 2^exponent.
    """

    codes_NK: np.ndarray
    exponents_BTRJ: np.ndarray
    signs_BTRJ: np.ndarray
    columns: int

    @property
    def bits(self) -> int:
        return len(self.exponents_BTRJ)

    @property
    def bits_per_weight(self) -> float:
        """With scales, a byte for each term."""
        return self.bits + TERM_BITS * self.exponents_BTRJ.size / self.codes_NK.size

    def scales(self) -> np.ndarray:
        """α [B, R, J]."""
        powers = np.exp2(self.exponents_BTRJ.astype(np.float64))
        return (self.signs_BTRJ * powers).sum(1).astype(np.float32)

    def dequantised(self) -> Tensor:
        """w_NK in float32."""
        (outputs, inputs), scales_BRJ = self.codes_NK.shape, self.scales()
        size = -(-outputs // scales_BRJ.shape[1])
        rows, columns = np.arange(outputs) // size, np.arange(inputs) // self.columns
        found = np.zeros(self.codes_NK.shape, np.float32)
        for b, scales_RJ in enumerate(scales_BRJ):
            signs = np.where(self.codes_NK >> b & 1, np.float32(1), np.float32(-1))
            found += signs * scales_RJ[rows][:, columns]
        return torch.from_numpy(found)

    def packed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Codes, shifts and sign bits as the product by table lookup takes them: a byte for the
        signs of eight inputs. Blocks have whole bytes."""
        codes_NK = np.pad(self.codes_NK, ((0, 0), (0, -self.codes_NK.shape[1] % WIDTH)))
        planes = codes_NK >> np.arange(self.bits, dtype=np.uint8)[:, None, None] & 1
        bytes_BNJ = np.packbits(planes, axis=2, bitorder="little")
        repeats = self.columns // WIDTH
        exponents = np.where(self.signs_BTRJ == 0, ABSENT, self.exponents_BTRJ)
        wide = [np.repeat(a, repeats, 3)[..., : bytes_BNJ.shape[2]] for a in
                (exponents, np.where(self.signs_BTRJ < 0, SIGN, 0))]  # fmt: skip
        shifts, turns = (np.ascontiguousarray(a, np.int32) for a in wide)
        return np.ascontiguousarray(bytes_BNJ.transpose(0, 2, 1)), shifts, turns


def powers_of_two(scales: Tensor, terms: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each scale as the sum of the nearest power of two and those of what is left, one after the
    other: the sum, and by term its exponent and sign."""
    left, total = scales.clone(), torch.zeros_like(scales)
    exponents, signs = [], []
    for _ in range(terms):
        exponent = left.abs().clamp_min(1e-12).log2().round()
        sign = torch.where(left.abs() > 1e-9, left.sign(), torch.zeros_like(left))
        total = total + sign * torch.exp2(exponent)
        left = scales - total
        exponents.append(exponent)
        signs.append(sign)
    return total, torch.stack(exponents, -1), torch.stack(signs, -1)


def fitted(weight_RI: Tensor, bits: int, terms: int, rounds: int) -> Powers:
    """The scales of each row's codes with the least squared error seen: greedy at first, then
    least squares and nearest signs in turns. `terms` 0: any numbers."""
    left_RI, greedy = weight_RI.clone(), []
    for _ in range(bits):
        scale_R1 = left_RI.abs().mean(1, keepdim=True)
        left_RI = left_RI - left_RI.sign() * scale_R1
        greedy.append(scale_R1)
    scales_RB = torch.cat(greedy, 1)
    patterns_LB = patterns(bits)
    least_R = torch.full(scales_RB.shape[:1], torch.inf)
    best = _powers(scales_RB, terms)
    for turn in range(rounds + 1):
        found = _powers(scales_RB, terms)
        levels_RL = found.scales_RB @ patterns_LB.T
        codes_RI = nearest(weight_RI, levels_RL)
        error_R = (weight_RI - levels_RL.gather(1, codes_RI)).square().sum(1)
        better_R = error_R < least_R
        least_R = torch.minimum(error_R, least_R)
        best = Powers(*(
            torch.where(better_R.view(-1, *[1] * (a.ndim - 1)), a, b)
            for a, b in zip(found, best, strict=True)
        ))  # fmt: skip
        if turn < rounds:
            signs_RBI = patterns_LB.T[:, codes_RI].transpose(0, 1)
            cross_RBB = signs_RBI @ signs_RBI.mT / weight_RI.shape[1] + 1e-4 * torch.eye(bits)
            wanted_RB1 = signs_RBI @ weight_RI.unsqueeze(2) / weight_RI.shape[1]
            scales_RB = torch.linalg.solve(cross_RBB, wanted_RB1).squeeze(2).abs()
    return best


def _powers(scales_RB: Tensor, terms: int) -> Powers:
    if terms == 0:
        nothing = scales_RB.new_zeros(*scales_RB.shape, 0)
        return Powers(scales_RB.half().float(), nothing, nothing)
    return Powers(*powers_of_two(scales_RB, terms))


@cache
def patterns(bits: int) -> Tensor:
    """[2^B, B]: the signs that each code stands for."""
    codes = torch.arange(2**bits)
    return (codes[:, None] >> torch.arange(bits) & 1) * 2.0 - 1.0


def binary_fit(parts: int, bits: int, terms: int, rounds: int = ROUNDS) -> Fit:
    """Levels of binary codes whose scales each of `parts` of the rows shares."""

    def fit(part_NC: Tensor) -> tuple[Tensor, Powers]:
        outputs = len(part_NC)
        size = -(-outputs // parts)
        short = parts * size - outputs
        rows_NC = torch.cat([part_NC, part_NC[-1:].expand(short, -1)]) if short else part_NC
        found = fitted(rows_NC.reshape(parts, -1), bits, terms, rounds)
        levels_RL = found.scales_RB @ patterns(bits).T
        return levels_RL.repeat_interleave(size, 0)[:outputs], found

    return fit


def shift_add(
    weight_NK: Tensor, upper_KK: Tensor | None, bits: int, parts: int = 8, columns: int = 8,
    terms: int = 2, rounds: int = ROUNDS,
) -> BinaryCodes:  # fmt: skip
    """The binary codes of a layer; without `upper_KK` its weights alone are fitted."""
    fit = binary_fit(parts, bits, terms, rounds)
    _, codes_NK, kept = compensated(weight_NK, upper_KK, columns, fit)
    # [J, R, B, T] of each kept
    exponents = torch.stack([found.exponents_RBT for found in kept]).permute(2, 3, 1, 0)
    signs = torch.stack([found.signs_RBT for found in kept]).permute(2, 3, 1, 0)
    return BinaryCodes(codes_NK, exponents.int().numpy(), signs.int().numpy(), columns)


def importance(weight_NK: Tensor, upper_KK: Tensor) -> float:
    """How much a layer is hurt by rounding, a weight: the norm of its weights, each over what its
    column's error is divided by, times their variance (the paper's criterion)."""
    score_NK = weight_NK / upper_KK.diagonal()
    return float(score_NK.norm() * score_NK.var() / weight_NK.numel() ** 0.5)


def allocated(
    importances: Mapping[str, float], sizes: Mapping[str, int], mean: float, widths: tuple[int, ...]
) -> dict[str, int]:
    """Bits by layer, `mean` of a weight at most: each next bit goes where it takes most away of
    importance · size · 4^-bits, a bit of memory."""
    found = dict.fromkeys(sizes, widths[0])
    left = (mean - widths[0]) * sum(sizes.values())
    while True:
        open_ = [n for n in sizes if found[n] < widths[-1] and sizes[n] <= left]
        if not open_:
            return found
        most = max(open_, key=lambda name: importances[name] * 4.0 ** -found[name])
        found[most] += 1
        left -= sizes[most]
