"""Sixteen float32 side by side, as LLVM values: what the tile and softmax kernels are emitted from.

Numba's own loops leave the choice of registers to LLVM; here each vector is named, so that a row's
sums run in one fixed order whatever else is computed beside it.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numba
from llvmlite import ir

LANES = 16
# AVX-512: 32 registers of 16 floats; elsewhere a vector takes two of 16 registers, or four of 32.
WIDE = bool(llvm.get_host_cpu_features().get("avx512f"))
FLOAT = ir.FloatType()
INT16, INT32, INT64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
VECTOR = ir.VectorType(FLOAT, LANES)
INTS = ir.VectorType(INT32, LANES)
SHORTS = ir.VectorType(INT16, LANES)
INT8 = ir.IntType(8)
BYTES = ir.VectorType(INT8, LANES)
HALVES = ir.VectorType(ir.HalfType(), LANES)

LOG2_E = 1.4426950408889634
# 2^x on [-0.5, 0.5] within 3e-9: Chebyshev fit of degree 6, highest power first.
EXP2 = (
    1.546973198e-4,
    1.340043217e-3,
    9.618025603e-3,
    5.550327214e-2,
    2.402265121e-1,
    6.931471867e-1,
    1.0,
)


def whole(value: int) -> ir.Constant:
    """An int64 constant."""
    return ir.Constant(INT64, value)


def same(value: float) -> ir.Constant:
    """A vector constant with every lane equal."""
    return ir.Constant(VECTOR, [value] * LANES)


def zeros() -> ir.Constant:
    """Sixteen times 0.0."""
    return same(0.0)


def address(context: Any, builder: Any, kind: Any, array: Any, at: Any, to: ir.Type) -> Any:
    """A pointer of LLVM type `to` at element `at` of a numba array."""
    start = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(start, [at], inbounds=True), to.as_pointer())


def load(builder: Any, pointer: Any, align: int = 4) -> Any:
    """Load what `pointer` points at, aligned to at least `align` bytes."""
    value = builder.load(pointer)
    value.align = align
    return value


def store(builder: Any, value: Any, pointer: Any) -> None:
    """Store a vector of floats at a float pointer."""
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer())).align = 4


def fetch(builder: Any, pointer: Any, level: int = 1) -> None:
    """Ask for a cache line, into that level of cache; past the end of an array does no harm."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, INT32, INT32, INT32])
    prefetch = numba.core.cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read, near, data = INT32(0), INT32(4 - level), INT32(1)
    builder.call(prefetch, [builder.bitcast(pointer, byte), read, near, data])


def at(builder: Any, pointer: Any, index: Any) -> Any:
    """Pointer arithmetic in elements."""
    return builder.gep(pointer, [index], inbounds=True)


def splat(builder: Any, scalar: Any) -> Any:
    """A vector with every lane equal to a number of 32 bits."""
    undefined = ir.Constant(ir.VectorType(scalar.type, LANES), ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(INT32, 0))
    return builder.shuffle_vector(one, undefined, ir.Constant(INTS, [0] * LANES))


def counted(
    builder: Any, count: Any, first: list[Any], turn: Callable[[Any, list[Any]], list[Any]]
) -> list[Any]:
    """`turn(i, had)` for i from 0 to `count`, at least once; what the last gave."""
    b, before = builder, builder.block
    loop, done = b.append_basic_block("turn"), b.append_basic_block("turned")
    b.branch(loop)
    b.position_at_end(loop)
    i, had = b.phi(INT64), [b.phi(value.type) for value in first]
    found = turn(i, had)
    following = b.add(i, whole(1))
    for phi, begin, end in zip([i, *had], [whole(0), *first], [following, *found], strict=True):
        phi.add_incoming(begin, before)
        phi.add_incoming(end, b.block)
    b.cbranch(b.icmp_signed("<", following, count), loop, done)
    b.position_at_end(done)
    return found


def _call(builder: Any, name: str, *operands: Any) -> Any:
    kind = ir.FunctionType(operands[0].type, [operands[0].type] * len(operands))
    name = f"llvm.{name}.v{operands[0].type.count}f32"
    function = numba.core.cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, operands)


def fma(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a · b + c, rounded once."""
    return _call(builder, "fma", a, b, c)


def maximum(builder: Any, a: Any, b: Any) -> Any:
    """The larger of each lane; `a` where one is not a number: one instruction, unlike `maxnum`."""
    return builder.select(builder.fcmp_ordered(">", b, a), b, a)


def minimum(builder: Any, a: Any, b: Any) -> Any:
    """The smaller of each lane; `a` where one is not a number."""
    return builder.select(builder.fcmp_ordered("<", b, a), b, a)


def widen(builder: Any, shorts: Any) -> Any:
    """bfloat16 bits to float32: the upper half of each lane."""
    return builder.bitcast(
        builder.shl(builder.zext(shorts, INTS), ir.Constant(INTS, [16] * LANES)), VECTOR
    )


def widen_bytes(builder: Any, codes: Any) -> Any:
    """e4m3 codes to float32: float16 of the same bits, whose bias is 8 more. NaN reads as 480."""
    shorts = builder.zext(codes, SHORTS)

    def bits(count: int) -> ir.Constant:
        return ir.Constant(SHORTS, [count] * LANES)

    sign = builder.shl(builder.and_(shorts, bits(0x80)), bits(8))
    rest = builder.shl(builder.and_(shorts, bits(0x7F)), bits(7))
    halves = builder.bitcast(builder.or_(sign, rest), HALVES)
    return builder.fmul(builder.fpext(halves, VECTOR), same(256.0))


def exp(builder: Any, x: Any) -> Any:
    """e^x by lanes to 2e-7 near 0 and 2e-6 at the ends; 0 below -87, e^88 above 88."""
    safe = minimum(builder, same(88.0), maximum(builder, same(-88.0), x))
    power = _call(builder, "rint", builder.fmul(safe, same(LOG2_E)))
    rest = fma(builder, safe, same(LOG2_E), builder.fneg(power))
    value = same(EXP2[0])
    for coefficient in EXP2[1:]:
        value = fma(builder, value, rest, same(coefficient))
    bits = builder.shl(builder.fptosi(power, INTS), ir.Constant(INTS, [23] * LANES))
    result = builder.bitcast(builder.add(builder.bitcast(value, INTS), bits), VECTOR)
    return builder.select(builder.fcmp_ordered("<", x, same(-87.0)), zeros(), result)


def fold(builder: Any, vector: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """The lanes combined to one number, upper half onto lower half until one is left."""
    width = LANES
    while width > 1:
        width //= 2
        lower, upper = (
            ir.Constant(ir.VectorType(INT32, width), list(range(start, start + width)))
            for start in (0, width)
        )
        vector = combine(
            builder.shuffle_vector(vector, vector, lower),
            builder.shuffle_vector(vector, vector, upper),
        )
    return builder.extract_element(vector, ir.Constant(INT32, 0))
