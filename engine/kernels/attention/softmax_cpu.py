"""Softmax down the columns of a block of scores, sixteen columns a vector: no sum crosses lanes.

Scores are in units of log 2 (queries carry scale · log2 e), so every exponential is a power of two.
Blocks are [rows, BLOCK] and contiguous in flat float32 arrays.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.compiled import emitted
from engine.kernels.lanes import EXP2, INTS, LANES, whole

SIZE = types.int64
LOWEST = -127.0  # its exponent field is 0: at it and below, the bits put together here are 0.0


def exp2(b: Any, x: Any) -> Any:
    """2^x by lanes for x < 128, within 3e-9 before rounding, or within 2^-126; 0 below -127."""
    safe = lanes.maximum(b, lanes.same(LOWEST), x)
    kind = ir.FunctionType(lanes.VECTOR, [lanes.VECTOR])
    rint = cgutils.get_or_insert_function(b.module, kind, f"llvm.rint.v{LANES}f32")
    power = b.call(rint, [safe])
    rest = b.fsub(safe, power)
    value = lanes.same(EXP2[0])
    for coefficient in EXP2[1:]:
        value = lanes.fma(b, value, rest, lanes.same(coefficient))
    bits = b.shl(b.fptosi(power, INTS), ir.Constant(INTS, [23] * LANES))
    return b.bitcast(b.add(b.bitcast(value, INTS), bits), lanes.VECTOR)


def _read(b: Any, pointer: Any) -> Any:
    return lanes.load(b, b.bitcast(pointer, lanes.VECTOR.as_pointer()))


@emitted
def soften(context, s, at, rows, running, best_at, below_at, fading_at):
    """s = 2^(s - best) for 16 columns, best and the sums below brought up to date.

    `running` holds by column, at the three places, the largest score so far, the sum of powers so
    far, and (written) the factor by which this block makes earlier results fade.
    """
    signature = types.void(s, SIZE, SIZE, running, SIZE, SIZE, SIZE)

    def emit(target, b, signature, args):
        kinds, rows = signature.args, args[2]
        s = lanes.address(target, b, kinds[0], args[0], args[1], lanes.FLOAT)
        best_at, below_at, fading_at = (
            lanes.address(target, b, kinds[3], args[3], at, lanes.FLOAT) for at in args[4:]
        )
        before = _read(b, best_at)
        best = cgutils.alloca_once_value(b, before)
        with cgutils.for_range(b, rows) as loop:
            row = _read(b, lanes.at(b, s, b.mul(loop.index, whole(BLOCK))))
            b.store(lanes.maximum(b, b.load(best), row), best)
        highest = b.load(best)
        nothing = b.fcmp_ordered("<", highest, lanes.same(-3e38))  # no key seen yet: all -inf
        shift = b.select(nothing, lanes.zeros(), highest)
        total = cgutils.alloca_once_value(b, lanes.zeros())
        with cgutils.for_range(b, rows) as loop:
            place = lanes.at(b, s, b.mul(loop.index, whole(BLOCK)))
            weight = exp2(b, b.fsub(_read(b, place), shift))
            lanes.store(b, weight, place)
            b.store(b.fadd(b.load(total), weight), total)
        fading = exp2(b, b.fsub(before, shift))
        lanes.store(b, lanes.fma(b, _read(b, below_at), fading, b.load(total)), below_at)
        lanes.store(b, highest, best_at)
        lanes.store(b, fading, fading_at)
        return target.get_dummy_value()

    return signature, emit


def _gradient(across: bool) -> Any:
    @emitted
    def weigh(context, s, s_at, dp, dp_at, rows, lse, lse_at, delta, delta_at):
        signature = types.void(s, SIZE, dp, SIZE, SIZE, lse, SIZE, delta, SIZE)

        def emit(target, b, signature, args):
            kinds, rows = signature.args, args[4]
            s, dp, lse, delta = (
                lanes.address(target, b, kinds[i], args[i], args[i + 1], lanes.FLOAT)
                for i in (0, 2, 5, 7)
            )

            def of(pointer: Any, row: Any) -> Any:
                if across:
                    return lanes.splat(b, b.load(lanes.at(b, pointer, row)))
                return _read(b, pointer)

            with cgutils.for_range(b, rows) as loop:
                offset = b.mul(loop.index, whole(BLOCK))
                score, slope = lanes.at(b, s, offset), lanes.at(b, dp, offset)
                p = exp2(b, b.fsub(_read(b, score), of(lse, loop.index)))
                lanes.store(b, p, score)
                rest = b.fsub(_read(b, slope), of(delta, loop.index))
                lanes.store(b, b.fmul(p, rest), slope)
            return target.get_dummy_value()

        return signature, emit

    return weigh


# p = 2^(s - lse) and ds = p · (dp - delta) for 16 columns, in place of s and dp; `lse` and `delta`
# hold one number a row (queries down) or one a column (queries across).
weigh_rows, weigh_columns = _gradient(True), _gradient(False)
