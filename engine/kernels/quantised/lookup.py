"""Product by table lookup (numba): each sum of a few inputs is made once, and weights index it.

A table holds what a group of inputs comes to under every pattern of their weights: -1 and 1 (base
2), or -1, 0 and 1 (base 3). It is filled by one addition an entry (LUT-GEMM, arXiv 2206.09557;
T-MAC, arXiv 2407.00088). A scale that is a power of two is added to a float's exponent.
Shape letters: N outputs, J groups of inputs, S entries of a table, B bits, T terms of a scale,
R groups of outputs.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from engine.kernels.compiled import inner, serial

EXPONENT = 23  # where a float32's exponent begins
SIGN = np.int32(-(2**31))
WIDTH = 8  # inputs of a binary group: a code is a byte


@inner
def filled(x, at, width, base, table, to):
    """The table of `width` inputs from `at` on; the pattern Σ dᵢ·baseⁱ has weights dᵢ - 1, of base
    2 twice dᵢ less 1."""
    first = x[at] - x[at]
    for i in range(width):
        first -= x[at + i]
    table[to] = first
    stride = 1
    for i in range(width):
        more = x[at + i] + x[at + i] if base == 2 else x[at + i]
        for start in range(to, to + stride * (base - 1), stride):
            for entry in range(start, start + stride):
                table[entry + stride] = table[entry] + more
        stride *= base


@serial
def binary_sums(x, codes, shifts, turns, table, bits, held, y):
    """y[N] = Σ over groups and bits of the sums that `codes` [B, J, N] index, each shifted.

    `x`: 8·J numbers; `shifts`, `turns` int32 [B, T, R, J]: exponents to add and sign bits to flip;
    `table` float32 [256] and `bits` int32 [256] are one memory, as `held` int32 [N] and its floats
    `y[N:]` are.
    """
    planes, groups, outputs = codes.shape
    terms, parts = shifts.shape[1:3]
    size = -(-outputs // parts)
    y[:outputs] = np.float32(0)
    for j in range(groups):
        filled(x, 8 * j, 8, 2, table, 0)
        for b in range(planes):
            for part in range(parts):
                start, stop = part * size, min((part + 1) * size, outputs)
                for term in range(terms):
                    more, turn = shifts[b, term, part, j], turns[b, term, part, j]
                    for n in range(start, stop):
                        whole = bits[codes[b, j, n]]
                        field = (whole >> 23) & 255
                        moved = (whole + (more << 23)) ^ turn
                        # Nothing is below the smallest exponent: an absent term's lies there.
                        held[n] = moved if (field > 0) & (field + more > 0) else 0
                    for n in range(start, stop):
                        y[n] += y[outputs + n]


@serial
def scaled_sums(x, codes, scales, table, y):
    """`binary_sums` with scales [B, R, J] that are multiplied, as where they are any number."""
    planes, groups, outputs = codes.shape
    size = -(-outputs // scales.shape[1])
    y[:outputs] = np.float32(0)
    for j in range(groups):
        filled(x, 8 * j, 8, 2, table, 0)
        for b in range(planes):
            for n in range(outputs):
                y[n] += scales[b, n // size, j] * table[codes[b, j, n]]


@serial
def ternary_sums(x, codes, width, table, y):
    """y[N] int32 = Σ over groups of the sums that `codes` [J, N] index: `x` int32 [width·J]."""
    groups, outputs = codes.shape
    y[:] = np.int32(0)
    for j in range(groups):
        filled(x, width * j, width, 3, table, 0)
        for n in range(outputs):
            y[n] += table[codes[j, n]]


def ternary_matmul(x_MK: Tensor, codes_JN: np.ndarray, width: int) -> Tensor:
    """y_MN = x · Wᵀ in int32 of integers x, the weight's patterns of `width` inputs by group."""
    rows, (groups, outputs) = len(x_MK), codes_JN.shape
    x = _filled_up(x_MK, groups * width, np.int32)
    y = np.empty((rows, outputs), np.int32)
    table = np.empty(3**width, np.int32)
    for row in range(rows):
        ternary_sums(x[row], codes_JN, width, table, y[row])
    return torch.from_numpy(y)


def binary_matmul(
    x_MK: Tensor, codes_BJN: np.ndarray, shifts_BTRJ: np.ndarray, turns_BTRJ: np.ndarray
) -> Tensor:
    """y_MN = x · Wᵀ in float32, scales as exponents and sign bits (`binary_sums`)."""
    rows, outputs = len(x_MK), codes_BJN.shape[2]
    x = _filled_up(x_MK, WIDTH * codes_BJN.shape[1], np.float32)
    table, y = np.empty(2**WIDTH, np.float32), np.empty(2 * outputs, np.float32)
    found = np.empty((rows, outputs), np.float32)
    for row in range(rows):
        binary_sums(
            x[row], codes_BJN, shifts_BTRJ, turns_BTRJ, table, table.view(np.int32),
            y.view(np.int32)[outputs:], y,
        )  # fmt: skip
        found[row] = y[:outputs]
    return torch.from_numpy(found)


def scaled_matmul(x_MK: Tensor, codes_BJN: np.ndarray, scales_BRJ: np.ndarray) -> Tensor:
    """`binary_matmul` with scales that are multiplied."""
    rows, outputs = len(x_MK), codes_BJN.shape[2]
    x = _filled_up(x_MK, WIDTH * codes_BJN.shape[1], np.float32)
    y = np.empty((rows, outputs), np.float32)
    for row in range(rows):
        scaled_sums(x[row], codes_BJN, scales_BRJ, np.empty(2**WIDTH, np.float32), y[row])
    return torch.from_numpy(y)


def _filled_up(x_MK: Tensor, width: int, kind: Any) -> np.ndarray:
    found = np.zeros((len(x_MK), width), kind)
    found[:, : x_MK.shape[1]] = x_MK.detach().numpy()
    return found


def multiplications(function: Any) -> int:
    """Multiplications and divisions of floats in the machine's code of a compiled function, as
    LLVM has them (`fmul`, `fdiv`, fused products)."""
    found = 0
    for result in function.overloads.values():
        text = str(result.library._get_module_for_linking())
        found += sum(text.count(f" {word} ") for word in ("fmul", "fdiv"))
        found += text.count("call float @llvm.fm") + text.count("x float> @llvm.fm")
    return found


# pJ of one operation on 16-bit floats, a lookup in 256 entries, and a bit from DRAM: the unit
# energies that ShiftAddLLM's authors model with (energy/hw_utils.py of their repository at
# 48c0b9d2, after 45 nm tables).
MULTIPLY, ADD, SHIFT, LOOK_UP, DRAM_BIT = 1.1, 0.4, 0.15, 0.37, 200 / 16


def energy(
    outputs: int, inputs: int, bits: int, terms: int, bits_per_weight: float, rows: int = 1
) -> float:
    """J of a row's product by `binary_sums`, weights from DRAM once for so many rows (modelled):
    tables, then a lookup and for each term a shift and an addition."""
    tables = inputs / WIDTH * 2**WIDTH * ADD
    each = LOOK_UP + max(terms, 1) * (SHIFT + ADD)
    read = outputs * inputs * bits_per_weight * DRAM_BIT / rows
    return 1e-12 * (tables + outputs * inputs / WIDTH * bits * each + read)


def multiplied_energy(outputs: int, inputs: int, bits_per_weight: float, rows: int = 1) -> float:
    """J of the same product by multiplying 16-bit floats, weights from DRAM (modelled)."""
    return 1e-12 * outputs * inputs * (MULTIPLY + ADD + bits_per_weight * DRAM_BIT / rows)
