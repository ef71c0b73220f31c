"""The multiply-add tile of attention: y[r, n] += Σ_k x[r, k] · w[k, n] with any strides in x.

The 16 lanes of a vector are neighbouring columns n (queries or keys of one block), so both products
of attention and all of its gradients read keys, values and queries where they lie: x is walked
along either of its axes, and only the block's own rows are ever transposed.
"""

from typing import Any

from numba import types
from numba.core import cgutils

from engine.kernels import lanes
from engine.kernels.compiled import emitted, inner
from engine.kernels.lanes import LANES, WIDE, whole

# Registers bound the tile: with AVX-512 16 of 32 hold sums, elsewhere 12 of 16; 8 would keep the
# multiply-add units waiting for their own results.
PANELS = 4 if WIDE else 1
ROWS = 4 if WIDE else 6
REST = 4  # rows of the tile that takes what is left
BLOCK = 64  # columns of a block: queries (or keys) that a task holds in its lanes
STEP = PANELS * LANES


def _tile(rows: int) -> Any:
    @emitted
    def tile(
        context, x, x_at, x_stride, x_step, valid, w, w_at, w_step, depth, y, y_at, y_stride, fresh
    ):
        """`rows` × (16 · PANELS) of y; those from `valid` on repeat the last, with equal values.

        `fresh`: y is overwritten instead of added to.
        """
        size = types.int64
        signature = types.void(
            x, size, size, size, size, w, size, size, size, y, size, size, types.boolean
        )

        def emit(target, b, signature, args):
            x, x_at, x_stride, x_step, valid, w, w_at, w_step, depth, y, y_at, step, fresh = args
            kinds = signature.args
            x = lanes.address(target, b, kinds[0], x, x_at, lanes.FLOAT)
            w = lanes.address(target, b, kinds[5], w, w_at, lanes.FLOAT)
            y = lanes.address(target, b, kinds[9], y, y_at, lanes.FLOAT)
            last = b.sub(valid, whole(1))
            row = [
                b.select(b.icmp_signed("<", whole(r), last), whole(r), last) for r in range(rows)
            ]
            starts = [lanes.at(b, x, b.mul(r, x_stride)) for r in row]
            outputs = [out for r in row for out in _panels(b, lanes.at(b, y, b.mul(r, step)))]
            # Held in memory here; LLVM keeps them in registers.
            sums = [cgutils.alloca_once(b, lanes.VECTOR) for _ in outputs]
            for held in sums:
                b.store(lanes.zeros(), held)
            with b.if_then(b.not_(fresh)):
                for out, held in zip(outputs, sums, strict=True):
                    b.store(_read(b, out), held)
            with cgutils.for_range(b, depth) as loop:
                column = lanes.at(b, w, b.mul(loop.index, w_step))
                weights = [_read(b, panel) for panel in _panels(b, column)]
                at = b.mul(loop.index, x_step)
                for r, start in enumerate(starts):
                    one = lanes.splat(b, b.load(lanes.at(b, start, at)))
                    for weight, held in zip(weights, sums[r * PANELS :], strict=False):
                        b.store(lanes.fma(b, one, weight, b.load(held)), held)
            for out, held in zip(outputs, sums, strict=True):
                lanes.store(b, b.load(held), out)
            return target.get_dummy_value()

        return signature, emit

    return tile


def _panels(b: Any, start: Any) -> list[Any]:
    return [lanes.at(b, start, whole(LANES * p)) for p in range(PANELS)]


def _read(b: Any, pointer: Any) -> Any:
    return lanes.load(b, b.bitcast(pointer, lanes.VECTOR.as_pointer()))


_most, _rest = _tile(ROWS), _tile(REST)


@inner
def product(x, x_at, x_stride, x_step, rows, w, w_at, depth, y, y_at, fresh):
    """y[:rows, :BLOCK] += x · w, where x[r, k] lies at x_at + r · x_stride + k · x_step.

    `w` [depth, BLOCK] and `y` [rows, BLOCK] are contiguous; all are flat float32 arrays. `fresh`:
    y = x · w, whatever y held.
    """
    row = 0
    while row < rows:
        left, here, to = rows - row, x_at + row * x_stride, y_at + row * BLOCK
        most = ROWS == REST or left > REST
        for column in range(0, BLOCK, STEP):
            if most:
                _most(
                    x, here, x_stride, x_step, min(left, ROWS), w, w_at + column, BLOCK, depth,
                    y, to + column, BLOCK, fresh,
                )  # fmt: skip
            else:
                _rest(
                    x, here, x_stride, x_step, left, w, w_at + column, BLOCK, depth,
                    y, to + column, BLOCK, fresh,
                )  # fmt: skip
        row += ROWS if most else REST
