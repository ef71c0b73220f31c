"""The tile of an integer product: codes of 2, 4 or 8 bits against activations of 8, in int32.

Codes stay four to a 32-bit lane: a shift, a flip of their sign bits and a mask leave bytes from 0
on, which one instruction (AVX-512 VNNI `vpdpbusd`, which does not saturate between its four
products) multiplies with four signed activations that all lanes share. Without it the same
integers come from plain multiplications. A group's sum begins where the flip is made good, so
integers are exact; then it takes its scales in order of the groups: a row's bits are the same in
any batch and on any processor.
"""

from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.lanes import INT32, INTS, LANES, WIDE, whole
from engine.kernels.quantised.formats import Format, format_of

BITS = 2, 4, 8  # of codes that four of lie in a lane after a shift
BYTE = 8
VNNI = WIDE and bool(llvm.get_host_cpu_features().get("avx512vnni"))
SPARE = 4 * LANES  # floats that rows which repeat another write to


def takes(of: Format) -> bool:
    """Whether codes of that format are multiplied as integers."""
    return of.bits in BITS and not of.is_float


def interleave(of: Format) -> int:
    """Codes from one byte's code to the next one's: a lane's bytes lie that far apart."""
    return BYTE // of.bits


def _ints(value: int) -> ir.Constant:
    return ir.Constant(INTS, [value if value < 2**31 else value - 2**32] * LANES)


def _in_bytes(value: int) -> ir.Constant:
    return _ints(value * 0x01010101)


def dot(b: Any, total: Any, unsigned: Any, signed: Any, native: bool = VNNI) -> Any:
    """total + Σ of four products, bytes from 0 to 255 by bytes from -128 to 127, in each lane."""
    if native:
        kind = ir.FunctionType(INTS, [INTS] * 3)
        name = "llvm.x86.avx512.vpdpbusd.512"
        function = cgutils.get_or_insert_function(b.module, kind, name)
        return b.call(function, [total, unsigned, signed])
    for byte in range(4):
        one = b.and_(b.lshr(unsigned, _ints(BYTE * byte)), _ints(0xFF))
        other = b.ashr(b.shl(signed, _ints(24 - BYTE * byte)), _ints(24))
        total = b.add(total, b.mul(one, other))
    return total


@dataclass
class _Tile:
    """Pointers of a tile, as LLVM values: by row those of the activations and the outputs, by panel
    those of the weight."""

    b: Any
    of: Format
    words: int  # of a block
    native: bool
    numbers: list[Any]  # activations' codes, four to a word
    begins: list[Any]  # what a group's sum begins with
    ranges: list[Any]  # activations' scales, by group
    outputs: list[Any]
    panels: list[Any]
    scales: list[Any]
    zeros: list[Any]
    ahead: Any  # words from a panel's to those that are asked for meanwhile

    def block(self, at: Any, totals: list[Any]) -> list[Any]:
        """`totals` and the products of block `at`; rows vary slowest."""
        b, apart = self.b, interleave(self.of)
        flip = _in_bytes(1 << (self.of.bits - 1))
        first = b.mul(at, whole(self.words * LANES))
        x_first = b.mul(at, whole(self.words * apart))
        found = list(totals)
        for word in range(self.words):
            held = []
            for panel in self.panels:
                place = lanes.at(b, panel, b.add(first, whole(word * LANES)))
                held.append(lanes.load(b, b.bitcast(place, INTS.as_pointer()), 64))
                lanes.fetch(b, lanes.at(b, place, self.ahead))
            for part in range(apart):
                codes = [self._bytes(each, part, flip) for each in held]
                at_x = b.add(x_first, whole(word * apart + part))
                for r, numbers in enumerate(self.numbers):
                    x = lanes.splat(b, b.load(lanes.at(b, numbers, at_x)))
                    for p, code in enumerate(codes):
                        place = r * len(codes) + p
                        found[place] = dot(b, found[place], code, x, self.native)
        return found

    def _bytes(self, held: Any, part: int, flip: Any) -> Any:
        """The codes of one part of a word, each a byte from 0 on."""
        b, bits = self.b, self.of.bits
        moved = b.lshr(held, _ints(part * bits)) if part else held
        flipped = b.xor(moved, flip)
        return flipped if bits == BYTE else b.and_(flipped, _in_bytes((1 << bits) - 1))

    def group(self, number: Any, first: Any, blocks: Any, scale_at: Any, had: list[Any]) -> Any:
        """`had` and a group's products with their scales; without `had`, added to the outputs."""
        b, wide = self.b, len(self.panels)
        begins = [lanes.splat(b, b.load(lanes.at(b, begin, number))) for begin in self.begins]
        start = [begin for begin in begins for _ in self.panels]
        totals = lanes.counted(
            b, blocks, start, lambda i, totals: self.block(b.add(first, i), totals)
        )
        half = 1 << (self.of.bits - 1)
        for p, (scale, zero) in enumerate(zip(self.scales, self.zeros or self.scales, strict=True)):
            scale = self._vector(lanes.at(b, scale, scale_at))
            zero = self._vector(lanes.at(b, zero, scale_at)) if self.zeros else None
            for r in range(len(self.numbers)):
                value = b.sitofp(totals[r * wide + p], lanes.VECTOR)
                if zero is not None:  # begun with -half · Σ x, of which zero · Σ x is a part
                    summed = b.fmul(b.sitofp(begins[r], lanes.VECTOR), lanes.same(1 / half))
                    value = lanes.fma(b, zero, summed, value)
                step = lanes.splat(b, b.load(lanes.at(b, self.ranges[r], number)))
                value = b.fmul(value, scale)
                if had:
                    had[r * wide + p] = lanes.fma(b, step, value, had[r * wide + p])
                else:
                    out = lanes.at(b, self.outputs[r], whole(LANES * p))
                    lanes.store(b, lanes.fma(b, step, value, self._vector(out)), out)
        return had

    def _vector(self, place: Any) -> Any:
        return lanes.load(self.b, self.b.bitcast(place, lanes.VECTOR.as_pointer()))

    def run(self, in_panel: Any, in_group: Any, groups: Any, share: Any) -> None:
        """All groups of activations, of which `share` have one scale of the weight."""
        b, alone = self.b, len(self.numbers) == 1
        places = [
            lanes.at(b, out, whole(LANES * p))
            for out in self.outputs
            for p in range(len(self.panels))
        ]
        had = [self._vector(place) for place in places] if alone else []

        def turn(number: Any, carried: list[Any]) -> list[Any]:
            scale_at, left, *sums = carried
            first = b.mul(number, in_group)
            rest = b.sub(in_panel, first)
            blocks = b.select(b.icmp_signed("<", rest, in_group), rest, in_group)
            sums = self.group(number, first, blocks, scale_at, list(sums))
            left = b.sub(left, whole(1))
            over = b.icmp_signed("==", left, whole(0))
            following = b.select(over, b.add(scale_at, whole(LANES)), scale_at)
            return [following, b.select(over, share, left), *sums]

        _, _, *sums = lanes.counted(b, groups, [whole(0), share, *had], turn)
        for value, place in zip(sums, places if alone else [], strict=True):
            lanes.store(b, value, place)


def tile(rows: int, panels: int, native: bool = VNNI) -> Any:
    """The numba intrinsic of one tile size: y += Σ over groups of scales · (Σ x · (code - zero)).

    Arguments: held (int32; what `activations.quantise` wrote), spare (offset in it of `SPARE` that
    nobody reads), x_at, x_stride (codes of a row), begin_at, range_at, groups (of a row), valid
    (1 … rows; further rows repeat the last), blocks (its element type is the format), block_at,
    in_panel and in_group (blocks of a panel, of a group of activations), share (those groups to a
    scale), scales, zeros (or None), scale_at, by_panel (elements between panels), y, y_at,
    y_stride, ahead (panels from each to the one asked for; 0 asks for nothing new).
    """

    @emitted
    def multiply_add(
        context, held, spare, x_at, x_stride, begin_at, range_at, groups, valid, blocks, block_at,
        in_panel, in_group, share, scales, zeros, scale_at, by_panel, y, y_at, y_stride, ahead,
    ):  # fmt: skip
        n = types.int64
        signature = types.void(
            held, n, n, n, n, n, n, n, blocks, n, n, n, n, scales, zeros, n, n, y, n, n, n
        )

        def emit(target, b, signature, args):
            (held, spare, x_at, x_stride, begin_at, range_at, groups, valid, blocks, block_at,
             in_panel, in_group, share, scales, zeros, scale_at, by_panel, y, y_at, y_stride,
             ahead) = args  # fmt: skip
            kinds = signature.args

            def start(number, array, at, kind=lanes.FLOAT):
                return lanes.address(target, b, kinds[number], array, at, kind)

            [(name, field)] = kinds[8].dtype.fields.items()
            words, last = field.type.shape[0], b.sub(valid, whole(1))
            there = [b.icmp_signed("<=", whole(r), last) for r in range(rows)]
            row = [b.select(there[r], whole(r), last) for r in range(rows)]
            unread, y = start(0, held, spare), start(17, y, y_at)
            numbers = start(0, held, x_at, INT32)
            begins, ranges = start(0, held, begin_at, INT32), start(0, held, range_at)
            codes, scales = start(8, blocks, block_at, INT32), start(13, scales, scale_at)
            step = b.mul(in_panel, whole(words * LANES))
            by = [b.mul(by_panel, whole(p)) for p in range(panels)]
            zero = None if kinds[14] == types.none else start(14, zeros, scale_at)
            _Tile(
                b, format_of(name), words, native,
                [lanes.at(b, numbers, b.mul(r, x_stride)) for r in row],
                [lanes.at(b, begins, b.mul(r, groups)) for r in row],
                [lanes.at(b, ranges, b.mul(r, groups)) for r in row],
                [b.select(there[i], lanes.at(b, y, b.mul(r, y_stride)), unread)
                 for i, r in enumerate(row)],
                [lanes.at(b, codes, b.mul(step, whole(p))) for p in range(panels)],
                [lanes.at(b, scales, each) for each in by],
                [] if zero is None else [lanes.at(b, zero, each) for each in by],
                b.mul(step, ahead),
            ).run(in_panel, in_group, groups, share)  # fmt: skip
            return target.get_dummy_value()

        return signature, emit

    return multiply_add
