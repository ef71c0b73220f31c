"""The multiply-add tile of attention: y[r, n] += Σ_k x[r, k] · w[k, n] with any strides in x.

The 16 lanes of a vector are neighbouring columns n (queries or keys of one block), so both products
of attention and all of its gradients read keys, values and queries where they lie: x is walked
along either of its axes, and only the block's own rows are ever transposed.
"""

from typing import Any

import llvmlite.binding as llvm
from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.compiled import emitted, inner
from engine.kernels.lanes import LANES, whole

# Registers bound the tile: 32 of 16 floats with AVX-512; elsewhere 16 of 8, or 32 of 4.
PANELS = 4 if llvm.get_host_cpu_features().get("avx512f") else 1
ROWS = 4
BLOCK = 64  # columns of a block: queries (or keys) that a task holds in its lanes
STEP = PANELS * LANES


@emitted
def _tile(context, x, x_at, x_stride, x_step, valid, w, w_at, w_step, depth, y, y_at, y_stride):
    """ROWS × (16 · PANELS) of y; rows from `valid` on repeat the last, with equal values."""
    size = types.int64
    signature = types.void(x, size, size, size, size, w, size, size, size, y, size, size)

    def emit(target, b, signature, args):
        x, x_at, x_stride, x_step, valid, w, w_at, w_step, depth, y, y_at, y_stride = args
        kinds = signature.args
        x = lanes.address(target, b, kinds[0], x, x_at, lanes.FLOAT)
        w = lanes.address(target, b, kinds[5], w, w_at, lanes.FLOAT)
        y = lanes.address(target, b, kinds[9], y, y_at, lanes.FLOAT)
        last = b.sub(valid, whole(1))
        row = [b.select(b.icmp_signed("<", whole(r), last), whole(r), last) for r in range(ROWS)]
        starts = [lanes.at(b, x, b.mul(r, x_stride)) for r in row]
        outputs = [_panels(b, lanes.at(b, y, b.mul(r, y_stride))) for r in row]
        # Held in memory here; LLVM keeps them in registers.
        sums = [[cgutils.alloca_once_value(b, _read(b, out)) for out in outs] for outs in outputs]
        with cgutils.for_range(b, depth) as loop:
            weights = [_read(b, p) for p in _panels(b, lanes.at(b, w, b.mul(loop.index, w_step)))]
            at = b.mul(loop.index, x_step)
            for start, held in zip(starts, sums, strict=True):
                one = lanes.splat(b, b.load(lanes.at(b, start, at)))
                for weight, place in zip(weights, held, strict=True):
                    b.store(lanes.fma(b, one, weight, b.load(place)), place)
        for outs, held in zip(outputs, sums, strict=True):
            for out, place in zip(outs, held, strict=True):
                lanes.store(b, b.load(place), out)
        return target.get_dummy_value()

    return signature, emit


def _panels(b: Any, start: Any) -> list[Any]:
    return [lanes.at(b, start, whole(LANES * p)) for p in range(PANELS)]


def _read(b: Any, pointer: Any) -> Any:
    return lanes.load(b, b.bitcast(pointer, lanes.VECTOR.as_pointer()))


@inner
def add_product(x, x_at, x_stride, x_step, rows, w, w_at, depth, y, y_at):
    """y[:rows, :BLOCK] += x · w, where x[r, k] lies at x_at + r · x_stride + k · x_step.

    `w` [depth, BLOCK] and `y` [rows, BLOCK] are contiguous; all are flat float32 arrays.
    """
    for row in range(0, rows, ROWS):
        valid = min(ROWS, rows - row)
        for column in range(0, BLOCK, STEP):
            _tile(
                x, x_at + row * x_stride, x_stride, x_step, valid, w, w_at + column, BLOCK, depth,
                y, y_at + row * BLOCK + column, BLOCK,
            )  # fmt: skip
