"""Product of rows with packed panels (numba): bit for bit the same row whatever the batch.

Every output is one sum over k in order (`engine.kernels.tile`), for one row as for a thousand.
Prefill takes this path too, so that batch and chunk never change a bit.
"""

import numba
import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.lanes import LANES, WIDE
from engine.kernels.matmul.pack import Packed, pack
from engine.kernels.operator import Variant
from engine.kernels.tile import tile

GROUP = 4 if WIDE else 1  # panels: registers bound the tile
STREAMS = 8 if WIDE else 4  # panels read side by side for a single row, which waits for memory
TASK = 4  # panels a thread claims at once: a multiple of GROUP; twice that for a single row

_one, _one_panel, _one_row = tile(1, GROUP), tile(1, 1), tile(1, STREAMS)
_two, _two_panel = tile(2, GROUP), tile(2, 1)
_four, _four_panel = tile(4, GROUP), tile(4, 1)


@inner
def add_product(
    x, x_at, x_stride, rows, w, w_at, w_step, panel, depth, first, last, y, y_at, y_stride
):
    """y[:, 16·first : 16·last] += x · W over `rows` rows of `depth` numbers.

    `x`, `w`, `y` are flat arrays; `_at` where they start, `_stride` elements between rows; in `w`,
    `w_step` elements between k (ignored for pairs) and `panel` between panels.
    """
    column = first
    while rows == 1 and last - column >= STREAMS:
        here, there = w_at + column * panel, y_at + column * LANES
        _one_row(x, x_at, x_stride, 1, w, here, w_step, panel, depth, y, there, y_stride)
        column += STREAMS
    while column < last:
        wide = last - column >= GROUP
        here, there = w_at + column * panel, y_at + column * LANES
        row = 0
        while row < rows:
            left = rows - row
            xs, ys = x_at + row * x_stride, there + row * y_stride
            if wide:
                if left >= 3:
                    _four(x, xs, x_stride, left, w, here, w_step, panel, depth, y, ys, y_stride)
                elif left == 2:
                    _two(x, xs, x_stride, left, w, here, w_step, panel, depth, y, ys, y_stride)
                else:
                    _one(x, xs, x_stride, left, w, here, w_step, panel, depth, y, ys, y_stride)
            elif left >= 3:
                _four_panel(x, xs, x_stride, left, w, here, w_step, panel, depth, y, ys, y_stride)
            elif left == 2:
                _two_panel(x, xs, x_stride, left, w, here, w_step, panel, depth, y, ys, y_stride)
            else:
                _one_panel(x, xs, x_stride, left, w, here, w_step, panel, depth, y, ys, y_stride)
            row += 4
        column += GROUP if wide else 1


@inner
def task_panels(rows, panels, threads):
    """How many panels a task takes: few, so that threads finish together."""
    return 2 * TASK if rows == 1 and panels % (2 * TASK * threads) == 0 else TASK


@kernel
def _matmul(x, rows, w, panel, depth, y, panels):
    width = panels * LANES
    for index in prange((panels + TASK - 1) // TASK):
        task = np.int64(index)
        first, last = task * TASK, min(task * TASK + TASK, panels)
        for row in range(rows):
            for i in range(row * width + first * LANES, row * width + last * LANES):
                y[i] = np.float32(0)
        add_product(x, 0, depth, rows, w, 0, LANES, panel, depth, first, last, y, 0, width)


def matmul(x_MK: Tensor, weight: Packed) -> Tensor:
    """y_MN = x · Wᵀ in float32; `x_MK` is taken as float32."""
    x = np.ascontiguousarray(x_MK.detach().float().numpy())
    rows, width = x.shape[0], weight.panels * LANES
    y = np.empty(rows * width, np.float32)
    if rows:
        panel = weight.data.size // weight.panels
        _matmul(x.reshape(-1), rows, weight.data, panel, weight.inputs, y, weight.panels)
    return torch.from_numpy(y.reshape(rows, width)[:, : weight.outputs])


def threads() -> int:
    """How many threads kernels run on."""
    return int(numba.get_num_threads())


def packed_first(x_MK: Tensor, weight_NK: Tensor | Packed) -> Tensor:
    """`matmul` of a weight that may not be packed yet: packing it takes longer than one product."""
    return matmul(x_MK, weight_NK if isinstance(weight_NK, Packed) else pack(weight_NK))


VARIANT = Variant(
    name="panels_cpu",
    about="panels of 16 outputs, packed once; a row's bits are the same in any batch",
    device="cpu",
    call=packed_first,
    dtypes=("float32", "bfloat16", "float16"),
)
