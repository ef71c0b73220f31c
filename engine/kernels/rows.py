"""Loops over one row of float32, sixteen at a time: largest, exponentials, sums, dot products.

Every sum runs in one fixed order of lanes, so zeros beyond a row's end change nothing.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import populate_array

from engine.kernels import lanes
from engine.kernels.compiled import emitted
from engine.kernels.lanes import LANES, whole
from engine.kernels.stored import stored, wide_vector

SIZE = types.int64


def loop(
    builder: Any, count: Any, start: list[Any], body: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """Run `body(i, carried)` for i in 0 … count - 1; the carried vectors after the last."""
    before = builder.block
    loop, done = builder.append_basic_block("lanes"), builder.append_basic_block("done")
    builder.cbranch(builder.icmp_signed(">", count, whole(0)), loop, done)
    builder.position_at_end(loop)
    i = builder.phi(lanes.INT64)
    carried = [builder.phi(lanes.VECTOR) for _ in start]
    turned = body(i, carried)
    following = builder.add(i, whole(1))
    for phi, first, value in zip(
        [i, *carried], [whole(0), *start], [following, *turned], strict=True
    ):
        phi.add_incoming(first, before)
        phi.add_incoming(value, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, done)
    builder.position_at_end(done)
    ended = [builder.phi(lanes.VECTOR) for _ in start]
    for phi, first, value in zip(ended, start, turned, strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(value, loop)
    return ended


def _vector(builder: Any, start: Any, i: Any) -> Any:
    return lanes.at(builder, start, builder.mul(i, whole(LANES)))


def _read(builder: Any, pointer: Any) -> Any:
    return lanes.load(builder, builder.bitcast(pointer, lanes.VECTOR.as_pointer()))


@emitted
def largest(context, x, x_at, vectors):
    """The largest of 16 · `vectors` numbers from `x[x_at]`."""
    signature = types.float32(x, SIZE, SIZE)

    def emit(target, b, signature, args):
        start = lanes.address(target, b, signature.args[0], args[0], args[1], lanes.FLOAT)
        low = lanes.same(float("-inf"))
        [best] = loop(
            b,
            args[2],
            [low],
            lambda i, had: [lanes.maximum(b, had[0], _read(b, _vector(b, start, i)))],
        )
        return lanes.fold(b, best, lambda one, other: lanes.maximum(b, one, other))

    return signature, emit


@emitted
def exponentials(context, x, x_at, vectors, shift):
    """x = e^(x - shift) over 16 · `vectors` numbers from `x[x_at]`; returns their sum."""
    signature = types.float32(x, SIZE, SIZE, types.float32)

    def emit(target, b, signature, args):
        start = lanes.address(target, b, signature.args[0], args[0], args[1], lanes.FLOAT)
        shift = lanes.splat(b, args[3])

        def body(i, had):
            pointer = _vector(b, start, i)
            value = lanes.exp(b, b.fsub(_read(b, pointer), shift))
            lanes.store(b, value, pointer)
            return [b.fadd(had[0], value)]

        [sums] = loop(b, args[2], [lanes.zeros()], body)
        return lanes.fold(b, sums, b.fadd)

    return signature, emit


@emitted
def exponential_sum(context, x, x_at, vectors, shift):
    """Σ e^(x - shift) over 16 · `vectors` numbers from `x[x_at]`, which stay as they are."""
    signature = types.float32(x, SIZE, SIZE, types.float32)

    def emit(target, b, signature, args):
        start = lanes.address(target, b, signature.args[0], args[0], args[1], lanes.FLOAT)
        shift = lanes.splat(b, args[3])

        def body(i, had):
            value = b.fsub(_read(b, _vector(b, start, i)), shift)
            return [b.fadd(had[0], lanes.exp(b, value))]

        [sums] = loop(b, args[2], [lanes.zeros()], body)
        return lanes.fold(b, sums, b.fadd)

    return signature, emit


@emitted
def gate(context, x, x_at, y, y_at, vectors):
    """x = x · sigmoid(x) · y over 16 · `vectors` numbers (SwiGLU; Shazeer, arXiv 2002.05202)."""
    signature = types.void(x, SIZE, y, SIZE, SIZE)

    def emit(target, b, signature, args):
        x_start = lanes.address(target, b, signature.args[0], args[0], args[1], lanes.FLOAT)
        y_start = lanes.address(target, b, signature.args[2], args[2], args[3], lanes.FLOAT)

        def body(i, had):
            pointer = _vector(b, x_start, i)
            x = _read(b, pointer)
            below = b.fadd(lanes.same(1.0), lanes.exp(b, b.fsub(lanes.zeros(), x)))
            value = b.fmul(b.fdiv(x, below), _read(b, _vector(b, y_start, i)))
            lanes.store(b, value, pointer)
            return []

        loop(b, args[4], [], body)
        return target.get_dummy_value()

    return signature, emit


@emitted
def squares(context, x, x_at, vectors):
    """The sum of squares of 16 · `vectors` numbers from `x[x_at]`."""
    signature = types.float32(x, SIZE, SIZE)

    def emit(target, b, signature, args):
        start = lanes.address(target, b, signature.args[0], args[0], args[1], lanes.FLOAT)

        def body(i, had):
            value = _read(b, _vector(b, start, i))
            return [lanes.fma(b, value, value, had[0])]

        [sums] = loop(b, args[2], [lanes.zeros()], body)
        return lanes.fold(b, sums, b.fadd)

    return signature, emit


@emitted
def total(context, x, x_at, vectors):
    """The sum of 16 · `vectors` numbers from `x[x_at]`."""
    signature = types.float32(x, SIZE, SIZE)

    def emit(target, b, signature, args):
        start = lanes.address(target, b, signature.args[0], args[0], args[1], lanes.FLOAT)
        zero = [lanes.zeros()]
        [sums] = loop(b, args[2], zero, lambda i, h: [b.fadd(h[0], _read(b, _vector(b, start, i)))])
        return lanes.fold(b, sums, b.fadd)

    return signature, emit


def _totals(b: Any, sums: list[Any]) -> list[Any]:
    """The sum of each vector's lanes, as `lanes.fold` adds them: of up to four at once, whose
    halves lie side by side after each addition."""
    if len(sums) == 1:
        return [lanes.fold(b, sums[0], b.fadd)]
    four = [*sums, *[lanes.zeros()] * (4 - len(sums))]
    pairs = [
        b.fadd(_picked(b, one, other, _halves(16, 0)), _picked(b, one, other, _halves(16, 8)))
        for one, other in zip(four[::2], four[1::2], strict=True)
    ]  # eight lanes of each vector
    quarters = [[8 * v + start + i for v in range(4) for i in range(4)] for start in (0, 4)]
    first, second = pairs
    found = b.fadd(*(_picked(b, first, second, places) for places in quarters))  # four of each
    for width in (2, 1):
        above = [lane // 4 * 4 + (lane % 4 + width) % 4 for lane in range(LANES)]
        found = b.fadd(found, _picked(b, found, found, above))
    return [b.extract_element(found, lanes.INT32(4 * r)) for r in range(len(sums))]


def _halves(lanes_each: int, start: int) -> list[int]:
    """Eight lanes from `start` of one vector, then of the other."""
    return [lanes_each * v + start + i for v in range(2) for i in range(8)]


def _picked(b: Any, one: Any, other: Any, places: list[int]) -> Any:
    return b.shuffle_vector(one, other, ir.Constant(lanes.INTS, places))


def dots(rows: int) -> Any:
    """The intrinsic that takes one key against `rows` queries.

    out[out_at + r · out_stride] = Σ q[q_at + r · q_stride + d] · k[k_at + d] over 16 · `vectors` d.
    `k` is float32, bfloat16 bits (uint16) or e4m3 codes (uint8).
    """

    @emitted
    def dot(context, q, q_at, q_stride, k, k_at, vectors, out, out_at, out_stride):
        signature = types.void(q, SIZE, SIZE, k, SIZE, SIZE, out, SIZE, SIZE)

        def emit(target, b, signature, args):
            q, q_at, q_stride, k, k_at, vectors, out, out_at, out_stride = args
            kinds = signature.args
            q = lanes.address(target, b, kinds[0], q, q_at, lanes.FLOAT)
            k = lanes.address(target, b, kinds[3], k, k_at, stored(kinds[3]))
            out = lanes.address(target, b, kinds[6], out, out_at, lanes.FLOAT)
            starts = [lanes.at(b, q, b.mul(q_stride, whole(r))) for r in range(rows)]

            def body(i, had):
                key = wide_vector(b, _vector(b, k, i), kinds[3].dtype)
                reads = [_read(b, _vector(b, start, i)) for start in starts]
                return [lanes.fma(b, x, key, h) for x, h in zip(reads, had, strict=True)]

            sums = loop(b, vectors, [lanes.zeros()] * rows, body)
            for r, value in enumerate(_totals(b, sums)):
                b.store(value, lanes.at(b, out, b.mul(out_stride, whole(r))))
            return target.get_dummy_value()

        return signature, emit

    return dot


@emitted
def fetch(context, x, at):
    """Ask for the cache line of `x[at]` ahead of its use."""
    signature = types.void(x, SIZE)

    def emit(target, b, signature, args):
        place = lanes.address(target, b, signature.args[0], args[0], args[1], ir.IntType(8))
        lanes.fetch(b, place, 2)
        return target.get_dummy_value()

    return signature, emit


@emitted
def part(context, x, at):
    """The flat array that begins at `x[at]`: a pointer, none of a slice's checks and counts."""
    signature = types.Array(x.dtype, 1, "C")(x, SIZE)

    def emit(target, b, signature, args):
        kind, result = signature.args[0], signature.return_type
        whole_array = target.make_array(kind)(target, b, args[0])
        found = target.make_array(result)(target, b)
        size = b.sub(whole_array.nitems, args[1])
        populate_array(
            found,
            data=b.gep(whole_array.data, [args[1]], inbounds=True),
            shape=cgutils.pack_array(b, [size]),
            strides=cgutils.pack_array(b, [whole_array.itemsize]),
            itemsize=whole_array.itemsize,
            meminfo=None,
        )
        return found._getvalue()

    return signature, emit
