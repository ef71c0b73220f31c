"""Tiled attention with conditional rescaling and exponentials on two units, counted.

Queries are held in tiles, keys stream past in blocks. A group of rows keeps its old maximum, and
its accumulator unscaled, until a row's maximum grows by more than τ powers of 2; as sum and
accumulator share the reference, the quotient is exact whatever τ is (arXiv 2603.05451, section 3).
Operands and softmax weights are bfloat16, as matrix units take them; sums are float32.
Shape letters: H heads, N queries, M keys of a block, D head size, W groups of rows.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.kernels.experiments.unit_balance.config import Softmax
from engine.kernels.experiments.unit_balance.exp2 import exp2, on_multiply_add, steps

BLOCK = 128  # keys of a block, and queries of a tile
LOG2E = math.log2(math.e)


@dataclass
class Counts:
    """Operations outside the matrix products, by what they are for."""

    maximum: int = 0  # comparisons
    scale: int = 0  # multiply-adds that scale scores and take the maximum off
    special: int = 0  # exponentials on the special unit
    polynomial: int = 0  # operations of exponentials on multiply-add units
    total: int = 0  # additions to row sums
    convert: int = 0  # weights to bfloat16
    rescale: int = 0  # multiplications of accumulators and sums
    rescaled: int = field(default=0)  # groups and blocks in which that happened
    looked: int = field(default=0)  # groups and blocks in all, the first block aside

    def operations(self) -> int:
        """All of them."""
        soft = self.maximum + self.scale + self.total + self.convert
        return soft + self.special + self.polynomial + self.rescale

    @property
    def rate(self) -> float:
        """Part of the looks that rescaled."""
        return self.rescaled / max(self.looked, 1)


def attention(q_HND: Tensor, k_HND: Tensor, v_HND: Tensor, how: Softmax) -> tuple[Tensor, Counts]:
    """softmax(q kᵀ / √D) v in float32, and what it took. N must be a multiple of the group."""
    q, k, v = (x.bfloat16().float() for x in (q_HND, k_HND, v_HND))
    heads, queries, dim = q.shape
    scale = LOG2E / math.sqrt(dim)
    counts = Counts()
    held = torch.full((heads, queries), -math.inf)
    total = torch.zeros(heads, queries)
    out = torch.zeros(heads, queries, v.shape[-1])
    for first in range(0, k.shape[1], BLOCK):
        block = slice(first, first + BLOCK)
        scores = q @ k[:, block].mT
        held = _rescale(scores.amax(-1) * scale, held, total, out, how, counts, first > 0)
        weights = _weights(scores * scale - held[..., None], how, counts)
        total += weights.sum(-1)
        out += weights.bfloat16().float() @ v[:, block]
        numbers = scores.numel()
        counts.maximum += numbers
        counts.scale += numbers
        counts.total += numbers
        counts.convert += numbers
    return out / total[..., None], counts


def _rescale(
    top: Tensor, held: Tensor, total: Tensor, out: Tensor, how: Softmax, counts: Counts, later: bool
) -> Tensor:
    """The maxima to take off from here on; sums and accumulators are scaled in place."""
    grown = torch.maximum(top, held)
    heads, queries = top.shape
    each = min(how.group, queries)
    moves = (grown - held > how.tau) if how.tau > 0 else torch.ones_like(grown, dtype=torch.bool)
    by_group = moves.view(heads, -1, each).any(-1)
    moves = by_group.repeat_interleave(each, dim=1)
    new = torch.where(moves, grown, held)
    if later:
        counts.looked += by_group.numel()
        counts.rescaled += int(by_group.sum())
        rows = int(moves.sum())
        counts.special += rows
        counts.rescale += rows * (out.shape[-1] + 1)
        by = torch.exp2(held - new)
        total *= by
        if not how.forgets:
            out *= by[..., None]
    return new


def _weights(x: Tensor, how: Softmax, counts: Counts) -> Tensor:
    """2ˣ, some columns by the special unit, some by the polynomial."""
    ours = on_multiply_add(x.shape[-1], how.share)
    if not ours.any():
        counts.special += x.numel()
        return torch.exp2(x)
    by_polynomial = int(ours.sum()) * (x.numel() // x.shape[-1])
    counts.polynomial += by_polynomial * steps(how.degree)
    counts.special += x.numel() - by_polynomial
    weights = torch.empty_like(x)
    weights[..., ~ours] = torch.exp2(x[..., ~ours])
    weights[..., ours] = exp2(x[..., ours], how.degree)
    return weights


def truth(q_HND: Tensor, k_HND: Tensor, v_HND: Tensor) -> Tensor:
    """The same in float64, of the same bfloat16 operands."""
    q, k, v = (x.bfloat16().double() for x in (q_HND, k_HND, v_HND))
    return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v


def root_mean_square(found: Tensor, true: Tensor) -> float:
    """Error relative to the truth's size."""
    return float((found.double() - true).norm() / true.norm())
