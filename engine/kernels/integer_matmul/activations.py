"""Activations in 8 bits, quantised as they come (dynamic quantisation): by row and group of inputs.

A group's largest magnitude takes 127; numbers are rounded to the nearest code, ties to even. What
is not a number makes its group's scale none, and so the sums that it is in.
Shape letters: M rows, K inputs, G groups.
"""

from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.integer_matmul.tile import SPARE, interleave
from engine.kernels.lanes import INT8, INT32, INTS, LANES, whole
from engine.kernels.quantised.formats import Format, format_of

LARGEST = 127
LEAST = np.float32(1e-30)  # groups whose largest magnitude is below are all zeros
MOST = 128  # inputs that share a scale, where those of the weight share one over more
# Adding it to a small float32 leaves the nearest integer in its lowest bits.
ROUNDER = 1.5 * 2.0**23
MAGNITUDE = 0x7FFFFFFF
BEFORE = 16 + SPARE  # int32 of scratch before a row's codes: what is held, and a row nobody reads


def group_of(group: int, inputs: int) -> int:
    """Inputs of a group of activations, for a weight with scales for `group` of `inputs` each."""
    if group <= MOST:
        return group
    return MOST if group >= inputs else gcd(group, MOST)


def room(rows: int, inputs: int, group: int) -> int:
    """int32 of scratch for so many rows."""
    return BEFORE + rows * (-(-inputs // 4) + 2 * -(-inputs // group))


def codes(x_MK: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray]:
    """int8 codes [M, K] and float32 scales [M, G]: what `quantise` writes, in numpy."""
    rows, inputs = x_MK.shape
    filled = np.pad(np.asarray(x_MK, np.float32), ((0, 0), (0, -inputs % group)))
    parts_MGI = filled.reshape(rows, filled.shape[1] // group, group)
    most_MG = np.abs(parts_MGI).max(2)
    some_MG = ~(most_MG < LEAST)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        turn_MG = np.where(some_MG, np.float32(LARGEST) / most_MG, np.float32(0))
        scales_MG = np.where(some_MG, most_MG / np.float32(LARGEST), np.float32(0))
        units_MGI = np.nan_to_num(np.rint(parts_MGI * turn_MG[:, :, None]), nan=0.0)
    codes_MK = units_MGI.astype(np.int8).reshape(filled.shape)[:, :inputs]
    return codes_MK, scales_MG.astype(np.float32)


def _constant(value: int) -> ir.Constant:
    return ir.Constant(INTS, [value] * LANES)


@dataclass
class _Row:
    """A row that is quantised, as LLVM values; vectors are of 16 numbers."""

    b: Any
    of: Format
    order: list[int]  # of 16 codes, as words of a packed weight take them
    x: Any
    to: Any  # codes
    begins: Any  # what sums begin with, by group
    ranges: Any  # scales, by group
    by: Any  # vectors of a group
    count: Any  # vectors of the row

    def group(self, number: Any, carried: list[Any]) -> list[Any]:
        """Quantise one group."""
        b = self.b
        first = b.mul(number, self.by)
        rest = b.sub(self.count, first)
        vectors = b.select(b.icmp_signed("<", rest, self.by), rest, self.by)
        turn, scale = self._scales(first, vectors)
        b.store(scale, lanes.at(b, self.ranges, number))

        def round_all(i: Any, had: list[Any]) -> list[Any]:
            at = b.add(first, i)
            moved = b.fadd(b.fmul(self._read(at), turn), lanes.same(ROUNDER))
            each = b.trunc(b.bitcast(moved, INTS), lanes.BYTES)
            mixed = b.shuffle_vector(each, each, ir.Constant(INTS, self.order))
            place = lanes.at(b, self.to, b.mul(at, whole(LANES)))
            b.store(mixed, b.bitcast(place, lanes.BYTES.as_pointer())).align = 4
            return [b.add(had[0], b.sext(each, INTS))]

        [total] = lanes.counted(b, vectors, [_constant(0)], round_all)
        total = lanes.fold(b, total, b.add)
        begin = b.mul(total, INT32(-(1 << (self.of.bits - 1))))
        b.store(begin, lanes.at(b, self.begins, number))
        return []

    def _scales(self, first: Any, vectors: Any) -> tuple[Any, Any]:
        """What numbers of a group are multiplied by, in all lanes, and its scale."""
        b = self.b

        def larger(one: Any, other: Any) -> Any:
            return b.select(b.icmp_signed(">", one, other), one, other)

        def highest(i: Any, had: list[Any]) -> list[Any]:
            bits = b.bitcast(self._read(b.add(first, i)), INTS)
            return [larger(b.and_(bits, _constant(MAGNITUDE)), had[0])]

        [most] = lanes.counted(b, vectors, [_constant(0)], highest)
        most = b.bitcast(lanes.fold(b, most, larger), lanes.FLOAT)
        nothing = b.fcmp_ordered("<", most, lanes.FLOAT(float(LEAST)))
        largest, none = lanes.FLOAT(float(LARGEST)), lanes.FLOAT(0.0)
        turn = b.select(nothing, none, b.fdiv(largest, most))
        return lanes.splat(b, turn), b.select(nothing, none, b.fdiv(most, largest))

    def _read(self, vector: Any) -> Any:
        place = lanes.at(self.b, self.x, self.b.mul(vector, whole(LANES)))
        return lanes.load(self.b, self.b.bitcast(place, lanes.VECTOR.as_pointer()))


@emitted
def quantise(context, x, x_at, inputs, group, like, held, x_to, begin_to, range_to):
    """One row as codes of `like`'s format want it: an array of a packed weight's blocks.

    `x`: `inputs` numbers from `x_at` on, a multiple of 16 as `group` is. To `held` (int32) go, from
    `x_to` on, codes, four a word, those that meet in a lane together; from `begin_to`, by group,
    what sums begin with, -2^(bits - 1) · Σ codes; from `range_to`, by group, float32 scales.
    """
    n = types.int64
    signature = types.void(x, n, n, n, like, held, n, n, n)
    [name] = like.dtype.fields
    of = format_of(name)
    apart = interleave(of)
    order = [
        first + part + apart * byte
        for first in range(0, LANES, 4 * apart) for part in range(apart) for byte in range(4)
    ]  # fmt: skip

    def emit(target, b, signature, args):
        x, x_at, inputs, group, _, held, x_to, begin_to, range_to = args
        kinds = signature.args
        x = lanes.address(target, b, kinds[0], x, x_at, lanes.FLOAT)
        to = lanes.address(target, b, kinds[5], held, x_to, INT8)
        begins = lanes.address(target, b, kinds[5], held, begin_to, INT32)
        ranges = lanes.address(target, b, kinds[5], held, range_to, lanes.FLOAT)
        by = b.sdiv(group, whole(LANES))
        count = b.sdiv(inputs, whole(LANES))

        row = _Row(b, of, order, x, to, begins, ranges, by, count)
        groups = b.sdiv(b.add(count, b.sub(by, whole(1))), by)
        lanes.counted(b, groups, [], row.group)
        return target.get_dummy_value()

    return signature, emit
