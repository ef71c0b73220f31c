"""KV cache numbers in memory: float32, bfloat16 bits (uint16) or e4m3 codes (uint8).

Whatever they are stored as, kernels compute with them in float32.
"""

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels import lanes
from engine.kernels.compiled import emitted

SIZE = types.int64


def stored(kind: Any) -> ir.Type:
    """The LLVM type of a number of an array that holds float32, bfloat16 bits or e4m3 codes."""
    return {32: lanes.FLOAT, 16: lanes.INT16, 8: lanes.INT8}[kind.dtype.bitwidth]


def wide_vector(builder: Any, pointer: Any, dtype: Any) -> Any:
    """Sixteen numbers of such an array as float32."""
    if dtype.bitwidth == 32:
        return lanes.load(builder, builder.bitcast(pointer, lanes.VECTOR.as_pointer()))
    if dtype.bitwidth == 16:
        shorts = builder.bitcast(pointer, lanes.SHORTS.as_pointer())
        return lanes.widen(builder, lanes.load(builder, shorts, 2))
    codes = builder.bitcast(pointer, lanes.BYTES.as_pointer())
    return lanes.widen_bytes(builder, lanes.load(builder, codes, 1))


@emitted
def read(context, x, at):
    """One number of a float32, bfloat16 (uint16) or e4m3 (uint8) array, as float32."""
    signature = types.float32(x, SIZE)

    def emit(target, b, signature, args):
        kind = stored(signature.args[0])
        value = b.load(lanes.address(target, b, signature.args[0], args[0], args[1], kind))
        if kind == lanes.FLOAT:
            return value
        if kind == lanes.INT8:
            one = b.insert_element(ir.Constant(lanes.BYTES, None), value, lanes.INT32(0))
            return b.extract_element(lanes.widen_bytes(b, one), lanes.INT32(0))
        bits = b.shl(b.zext(value, lanes.INT32), lanes.INT32(16))
        return b.bitcast(bits, lanes.FLOAT)

    return signature, emit


def _e4m3(builder: Any, bits: Any) -> Any:
    """The e4m3 code of a float32's bits: nearest, ties to even, the end beyond the ends."""
    b, whole_ = builder, lanes.INT32
    sign = b.lshr(b.and_(bits, whole_(-(2**31))), whole_(24))
    size = b.and_(bits, whole_(0x7FFFFFFF))
    odd = b.and_(b.lshr(size, whole_(20)), whole_(1))
    normal = b.sub(b.lshr(b.add(size, b.add(odd, whole_(0x7FFFF))), whole_(20)), whole_(120 << 3))
    # Below 2^-6 steps are even: adding 2^14, whose last bit is 2^-9, rounds to them.
    step = ir.Constant(lanes.FLOAT, 2.0**14)
    moved = b.bitcast(b.fadd(b.bitcast(size, lanes.FLOAT), step), whole_)
    small = b.sub(moved, b.bitcast(step, whole_))
    code = b.select(b.icmp_signed("<", size, whole_(121 << 23)), small, normal)
    code = b.select(b.icmp_signed(">", code, whole_(0x7E)), whole_(0x7E), code)
    return b.trunc(b.or_(code, sign), lanes.INT8)


@emitted
def write(context, x, at, value):
    """Store a float32 in a float32, bfloat16 (uint16) or e4m3 (uint8) array, rounding to nearest
    even; beyond the ends of e4m3 its end."""
    signature = types.void(x, SIZE, types.float32)

    def emit(target, b, signature, args):
        kind = stored(signature.args[0])
        place = lanes.address(target, b, signature.args[0], args[0], args[1], kind)
        if kind == lanes.FLOAT:
            b.store(args[2], place)
        elif kind == lanes.INT8:
            b.store(_e4m3(b, b.bitcast(args[2], lanes.INT32)), place)
        else:
            bits = b.bitcast(args[2], lanes.INT32)
            odd = b.and_(b.lshr(bits, lanes.INT32(16)), lanes.INT32(1))
            rounded = b.add(bits, b.add(odd, lanes.INT32(0x7FFF)))
            b.store(b.trunc(b.lshr(rounded, lanes.INT32(16)), lanes.INT16), place)
        return target.get_dummy_value()

    return signature, emit
