"""The tile of a product with a quantised weight: codes go from words to registers and no further.

One emitter makes the machine code of every format: where a code lies in its words is known when it
is compiled, so it costs a shift (two words where it crosses their ends) and what its kind takes to
become a float: a permutation of 16 values held in a register (4 bits and less, AVX-512), a shift
and a conversion (integers), or a float16 of the same bits (floats of few bits). Where it can, a
shuffle of bytes or a load from a few bytes on takes a shift's place, which one unit alone does.
Sums run over k in order within a group, then take its scale: a row's bits are the same in any
batch.
"""

from dataclasses import dataclass
from math import gcd
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.lanes import INT8, INT32, INTS, LANES, WIDE, whole
from engine.kernels.quantised.formats import Format, format_of

QUARTERS = ir.VectorType(INT8, 4 * LANES)
TOP = 2.0**24  # what a byte is too large by at the top of its word: sums stay exact
LEAST = 8  # codes of a step: a loop of fewer costs more than it compiles faster
TABLE_BITS = 4  # a register holds 16 values


def _same_int(value: int) -> ir.Constant:
    return ir.Constant(INTS, [value if value < 2**31 else value - 2**32] * LANES)


def _call(builder: Any, name: str, result: ir.Type, *operands: Any) -> Any:
    kind = ir.FunctionType(result, [operand.type for operand in operands])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)


@dataclass
class _Codes:
    """The codes of one panel's block, from the words that hold them."""

    builder: Any
    start: Any  # pointer to the block's first word
    of: Format
    ahead: Any = None  # words from here to what is asked for meanwhile

    def __post_init__(self) -> None:
        self.words: dict[int, Any] = {}
        self.apart: dict[tuple[int, int], Any] = {}

    def _word(self, number: int) -> Any:
        if number not in self.words:
            place = lanes.at(self.builder, self.start, whole(number * LANES))
            vector = self.builder.bitcast(place, INTS.as_pointer())
            self.words[number] = lanes.load(self.builder, vector, 64)
            if self.ahead is not None:
                lanes.fetch(self.builder, lanes.at(self.builder, place, self.ahead))
        return self.words[number]

    def value(self, k: int, table: Any) -> Any:
        """The float value of code k of every lane."""
        if table is not None:
            # Only an index's low four bits are read: what lies above needs no mask.
            names = "llvm.x86.avx512.permvar.sf.512"
            return _call(self.builder, names, lanes.VECTOR, table, self._low(k))
        if _whole_bytes(self.of):
            return self._byte(k)
        top = self._top(k)
        if not self.of.is_float:
            number = self.builder.ashr(top, _same_int(32 - self.of.bits))
            return self.builder.sitofp(number, lanes.VECTOR)
        return self._through_half(top)

    def _place(self, k: int) -> tuple[int, int, bool]:
        """(word, shift, whether it goes on in the next word)."""
        word, shift = divmod(k * self.of.bits, 32)
        return word, shift, shift + self.of.bits > 32

    def _byte(self, k: int) -> Any:
        """A whole byte, moved to the top by one shuffle and 2^24 times too large (`TOP`)."""
        b, (word, byte) = self.builder, divmod(k, 4)
        held = b.bitcast(self._word(word), QUARTERS)
        none = 4 * LANES  # of the other vector, which is zero
        places = [4 * lane + byte if i == 3 else none for lane in range(LANES) for i in range(4)]
        moved = b.shuffle_vector(
            held, ir.Constant(QUARTERS, [0] * none), ir.Constant(ir.VectorType(INT32, none), places)
        )
        return b.sitofp(b.bitcast(moved, INTS), lanes.VECTOR)

    def _low(self, k: int) -> Any:
        """Code k at the bottom, others' bits above: whole bytes are skipped by where the words are
        loaded from, the rest by a shift."""
        word, shift, crosses = self._place(k)
        if crosses:
            pair = self._word(word + 1), self._word(word), _same_int(shift)
            return _call(self.builder, "llvm.fshr.v16i32", INTS, *pair)
        skipped, rest = divmod(shift, 8)
        held = self._from(word, skipped)
        return self.builder.lshr(held, _same_int(rest)) if rest else held

    def _from(self, word: int, skipped: int) -> Any:
        """The words from byte `skipped` of the first on: the last lane's top is of what follows."""
        if not skipped:
            return self._word(word)
        if (word, skipped) not in self.apart:
            first = self.builder.bitcast(self.start, INT8.as_pointer())
            place = lanes.at(self.builder, first, whole(word * LANES * 4 + skipped))
            vector = self.builder.bitcast(place, INTS.as_pointer())
            self.apart[word, skipped] = lanes.load(self.builder, vector, 1)
        return self.apart[word, skipped]

    def _top(self, k: int) -> Any:
        """Code k at the top, others' bits below."""
        word, shift, crosses = self._place(k)
        up = (64 if crosses else 32) - shift - self.of.bits
        if crosses:
            pair = self._word(word + 1), self._word(word), _same_int(up)
            return _call(self.builder, "llvm.fshl.v16i32", INTS, *pair)
        return self.builder.shl(self._word(word), _same_int(up)) if up else self._word(word)

    def _through_half(self, top: Any) -> Any:
        """Sign, exponent and mantissa where float16 has them: exact; its bias is the scale's."""
        b, of = self.builder, self.of
        right = 5 - of.exponent
        held = (1 << (31 - right)) - (1 << (32 - of.bits - right))
        moved = b.ashr(top, _same_int(right)) if right else top
        kept = b.and_(moved, _same_int(0x80000000 | held))
        shorts = b.trunc(b.lshr(kept, _same_int(16)), lanes.SHORTS)
        return b.fpext(b.bitcast(shorts, lanes.HALVES), lanes.VECTOR)


def _whole_bytes(of: Format) -> bool:
    """Whether codes are moved by shuffles of bytes."""
    return WIDE and not of.is_float and of.bits == 8


def _table(of: Format) -> Any:
    """The register of values by code, over and over; None where codes are computed instead."""
    if not WIDE or of.bits > TABLE_BITS:
        return None
    values = [float(v) if v == v else 0.0 for v in of.values / of.factor]
    return ir.Constant(lanes.VECTOR, values * (LANES // len(values)))


def _period(of: Format, words: int) -> int:
    """Words after which codes lie as they began, a divisor of a block's: a step of the loop."""
    found = of.bits // gcd(of.bits, 32)
    while words % (2 * found) == 0 and 32 * found // of.bits < LEAST:
        found *= 2
    return found


@dataclass
class Place:
    """Pointers of a tile: rows of x, panels of blocks and their strides."""

    rows: list[Any]
    panels: list[Any]
    words: int
    of: Format
    ahead: Any = None  # words from a block to the one that is asked for while it is multiplied

    def sums(self, builder: Any, count: Any) -> list[Any]:
        """Σ x · value over `count` blocks, for each row and panel; rows vary slowest."""
        b = builder
        words = _period(self.of, self.words)
        depth = 32 * words // self.of.bits
        count = b.mul(count, whole(self.words // words))
        table = _table(self.of)
        before = b.block
        loop, done = b.append_basic_block("blocks"), b.append_basic_block("summed")
        b.branch(loop)
        b.position_at_end(loop)
        i = b.phi(lanes.INT64)
        i.add_incoming(whole(0), before)
        running = [b.phi(lanes.VECTOR) for _ in range(len(self.rows) * len(self.panels))]
        block = b.mul(i, whole(words * LANES))
        codes = [_Codes(b, lanes.at(b, panel, block), self.of, self.ahead) for panel in self.panels]
        first = b.mul(i, whole(depth))
        xs = [lanes.at(b, row, first) for row in self.rows]
        found: list[Any] = list(running)
        for k in range(depth):
            values = [each.value(k, table) for each in codes]
            for r, x in enumerate(xs):
                one = lanes.splat(b, b.load(lanes.at(b, x, whole(k))))
                for p, value in enumerate(values):
                    place = r * len(values) + p
                    found[place] = lanes.fma(b, one, value, found[place])
        following = b.add(i, whole(1))
        i.add_incoming(following, loop)
        for phi, value in zip(running, found, strict=True):
            phi.add_incoming(lanes.zeros(), before)
            phi.add_incoming(value, loop)
        b.cbranch(b.icmp_signed("<", following, count), loop, done)
        b.position_at_end(done)
        if _whole_bytes(self.of):
            found = [b.fmul(each, lanes.same(1 / TOP)) for each in found]
        return found


def panel_at(builder: Any, start: Any, stride: Any, panel: int) -> Any:
    """The 16 numbers of a panel."""
    place = lanes.at(builder, start, builder.mul(stride, whole(panel)))
    return lanes.load(builder, builder.bitcast(place, lanes.VECTOR.as_pointer()))


def _end_group(
    builder: Any, found: list[Any], sums: list[Any], scales: list[tuple[Any, Any]],
    outputs: list[Any], last: Any,
) -> None:  # fmt: skip
    """y += scale · (found - zero · Σ x), by row and panel; `last`: the last row there is."""
    b = builder
    for r, (total, output) in enumerate(zip(sums, outputs, strict=True)):
        less = b.fneg(lanes.splat(b, b.load(total)))
        for p, (scale, zero) in enumerate(scales):
            out = lanes.at(b, output, whole(LANES * p))
            had = lanes.load(b, b.bitcast(out, lanes.VECTOR.as_pointer()))
            this = lanes.fma(b, less, zero, found[r * len(scales) + p])
            value = lanes.fma(b, scale, this, had)
            if r:  # a row that repeats the last one must not add to it twice
                value = b.select(b.icmp_signed("<", last, whole(r)), had, value)
            lanes.store(b, value, out)


def tile(rows: int, panels: int) -> Any:
    """The numba intrinsic of one tile size: y += scale · (Σ x · value - zero · Σ x) over one group.

    Arguments: x, x_at, x_stride, valid (1 … rows; further rows repeat the last), blocks (its
    element type is the format), block_at, panel (blocks of one), count (blocks of the group, at
    least 1), scales and scale_at, zeros and zero_at, by_panel and zero_by_panel (elements between
    panels), sums (Σ x of the group by row), sum_at, sum_stride, y, y_at, y_stride.
    """

    @emitted
    def multiply_add(
        context, x, x_at, x_stride, valid, blocks, block_at, panel, count, scales, scale_at,
        by_panel, zeros, zero_at, zero_by_panel, sums, sum_at, sum_stride, y, y_at, y_stride,
    ):  # fmt: skip
        n = types.int64
        signature = types.void(
            x, n, n, n, blocks, n, n, n, scales, n, n, zeros, n, n, sums, n, n, y, n, n
        )

        def emit(target, b, signature, args):
            (x, x_at, x_stride, valid, blocks, block_at, panel, count, scales, scale_at,
             by_panel, zeros, zero_at, zero_by_panel, sums, sum_at, sum_stride, y, y_at,
             y_stride) = args  # fmt: skip
            kinds = signature.args

            def start(number, array, at, kind=lanes.FLOAT):
                return lanes.address(target, b, kinds[number], array, at, kind)

            [(name, field)] = kinds[4].dtype.fields.items()
            words = field.type.shape[0]
            x, y = start(0, x, x_at), start(17, y, y_at)
            sums = start(14, sums, sum_at)
            scales, zeros = start(8, scales, scale_at), start(11, zeros, zero_at)
            packed = start(4, blocks, block_at, lanes.INT32)
            last = b.sub(valid, whole(1))
            row = [
                b.select(b.icmp_signed("<", whole(r), last), whole(r), last) for r in range(rows)
            ]
            step = b.mul(panel, whole(words * LANES))
            place = Place(
                [lanes.at(b, x, b.mul(r, x_stride)) for r in row],
                [lanes.at(b, packed, b.mul(step, whole(p))) for p in range(panels)],
                words,
                format_of(name),
            )

            _end_group(
                b, place.sums(b, count), [lanes.at(b, sums, b.mul(r, sum_stride)) for r in row],
                [(panel_at(b, scales, by_panel, p), panel_at(b, zeros, zero_by_panel, p))
                 for p in range(panels)],
                [lanes.at(b, y, b.mul(r, y_stride)) for r in row], last,
            )  # fmt: skip
            return target.get_dummy_value()

        return signature, emit

    return multiply_add
