"""Emitted parts of loops over float64: eight at a time, stored past the caches or through them."""

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.compiled import emitted
from engine.kernels.lanes import address

WIDE = 8  # float64 numbers of a cache line
VECTOR = ir.VectorType(ir.DoubleType(), WIDE)


def _read(builder: Any, pointer: Any) -> Any:
    value = builder.load(pointer)
    value.align = 8
    return value


def _write(builder: Any, value: Any, pointer: Any, past: bool) -> None:
    store = builder.store(value, pointer, align=8 * WIDE)
    if past:
        one = ir.Constant(ir.IntType(32), 1)
        store.set_metadata("nontemporal", builder.module.add_metadata([one]))


def _splat(builder: Any, number: Any) -> Any:
    first = builder.insert_element(
        ir.Constant(VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0)
    )
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE)
    return builder.shuffle_vector(first, ir.Constant(VECTOR, ir.Undefined), zeros)


def _scaled(past: bool) -> Any:
    @emitted
    def scaled(context, out, x, factor, at):
        """out[at … at+7] = factor · x[…]; out must begin on a cache line, at be a multiple of 8."""

        def emit(target, builder, signature, given):
            out, x, factor, at = given
            values = _read(builder, address(target, builder, signature.args[1], x, at, VECTOR))
            values = builder.fmul(values, _splat(builder, factor))
            into = address(target, builder, signature.args[0], out, at, VECTOR)
            _write(builder, values, into, past)
            return target.get_dummy_value()

        return types.void(out, x, types.float64, types.int64), emit

    return scaled


def _summed(past: bool) -> Any:
    @emitted
    def summed(context, out, x, y, factor, at):
        """out[at … at+7] = x[…] + factor · y[…], two roundings; alignment as above."""

        def emit(target, builder, signature, given):
            out, x, y, factor, at = given
            first = _read(builder, address(target, builder, signature.args[1], x, at, VECTOR))
            second = _read(builder, address(target, builder, signature.args[2], y, at, VECTOR))
            second = builder.fmul(second, _splat(builder, factor))
            into = address(target, builder, signature.args[0], out, at, VECTOR)
            _write(builder, builder.fadd(first, second), into, past)
            return target.get_dummy_value()

        return types.void(out, x, y, types.float64, types.int64), emit

    return summed


scaled_8, scaled_8_through = _scaled(past=True), _scaled(past=False)
summed_8, summed_8_through = _summed(past=True), _summed(past=False)


@emitted
def fence(context):
    """Make this thread's streaming stores visible before anything that follows."""

    def emit(target, builder, signature, given):
        builder.fence("seq_cst")
        return target.get_dummy_value()

    return types.void(), emit
