"""Product of rows with a packed quantised weight (numba): codes are unpacked in registers only."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.lanes import LANES
from engine.kernels.matmul.panels_cpu import task_panels
from engine.kernels.operator import Variant
from engine.kernels.quantised.pack import TOGETHER, Packed, pack
from engine.kernels.quantised.row import row as row_tile
from engine.kernels.quantised.tile import tile
from engine.kernels.quantised.weight import Quantised
from engine.kernels.rows import total

ROWS = 4  # that share the unpacking of a code

_row, _four, _panel = row_tile(TOGETHER), tile(ROWS, TOGETHER), tile(1, 1)


@inner
def _group_sums(x, x_at, x_stride, rows, groups, inputs, width, sums):
    """Σ x of each group of `inputs` numbers, by row."""
    for row in range(rows):
        for group in range(groups):
            first = group * inputs
            vectors = min(inputs, width - first) // LANES
            sums[row * groups + group] = total(x, x_at + row * x_stride + first, vectors)


@inner
def add_quantised(
    x, x_at, x_stride, rows, blocks, in_panel, in_group, depth, scales, zeros, zero_step, first,
    last, y, y_at, y_stride, ahead, panels,
):  # fmt: skip
    """y[:, 16·first : 16·last] += x · W over `rows` rows of `in_panel · depth` numbers.

    `x`, `y` are flat arrays; `_at` where they start, `_stride` elements between rows. `in_panel`:
    blocks of a panel, `in_group`: of a group, `depth`: inputs of a block. `zero_step` 0: no zeros.
    A row alone asks for what lies `ahead` panels on, of the weight's `panels`, while it multiplies.
    """
    groups = (in_panel + in_group - 1) // in_group
    by_panel, sums = groups * LANES, np.zeros(ROWS * groups, np.float32)
    panel = first
    while panel < last:
        wide = TOGETHER if last - panel >= TOGETHER else 1
        row, there = 0, y_at + panel * LANES
        while row < rows:
            left = rows - row if wide == TOGETHER else 1
            xs, ys = x_at + row * x_stride, there + row * y_stride
            if zero_step:
                inputs, width = in_group * depth, in_panel * depth
                _group_sums(x, xs, x_stride, min(left, ROWS), groups, inputs, width, sums)
            if left == 1 and wide == TOGETHER:
                later = ahead if panel + ahead + TOGETHER <= panels else 0
                _row(
                    x, xs, blocks, panel * in_panel, in_panel, in_group, scales, panel * by_panel,
                    by_panel, zeros, panel * by_panel * zero_step, LANES * zero_step,
                    by_panel * zero_step, sums, y, ys, later,
                )  # fmt: skip
                row += 1
                continue
            for group in range(groups):
                skip = group * in_group
                count, at = min(in_group, in_panel - skip), panel * in_panel + skip
                x_here, scale_at = xs + skip * depth, panel * by_panel + group * LANES
                zero_at, by_zero = scale_at * zero_step, by_panel * zero_step
                if wide == 1:
                    _panel(
                        x, x_here, x_stride, 1, blocks, at, in_panel, count, scales, scale_at,
                        by_panel, zeros, zero_at, by_zero, sums, group, groups, y, ys, y_stride,
                    )  # fmt: skip
                else:
                    _four(
                        x, x_here, x_stride, left, blocks, at, in_panel, count, scales, scale_at,
                        by_panel, zeros, zero_at, by_zero, sums, group, groups, y, ys, y_stride,
                    )  # fmt: skip
            row += ROWS if left > 1 else 1
        panel += wide


@kernel
def _multiply(x, rows, blocks, in_panel, in_group, depth, scales, zeros, zero_step, y, panels):
    wide, unit = panels * LANES, task_panels(rows, panels, 1)
    start = np.int64(0)  # no constant, of which another product would be compiled
    for index in prange(panels // unit):
        first = np.int64(index) * unit
        for row in range(rows):
            for i in range(row * wide + first * LANES, row * wide + (first + unit) * LANES):
                y[i] = np.float32(0)
        add_quantised(
            x, start, in_panel * depth, rows, blocks, in_panel, in_group, depth, scales, zeros,
            zero_step, first, first + unit, y, start, wide, TOGETHER + start, panels,
        )  # fmt: skip


def quantised_matmul(x_MK: Tensor, weight: Quantised | Packed) -> Tensor:
    """y_MN = x · Wᵀ in float32; `x_MK` is taken as float32. A weight not packed is packed first."""
    packed = weight if isinstance(weight, Packed) else pack(weight)
    rows, inputs = x_MK.shape
    panels, in_panel = packed.blocks_PB.shape
    x = np.zeros((rows, in_panel * packed.depth), np.float32)
    x[:, :inputs] = x_MK.detach().float().numpy()
    zeros, zero_step = np.zeros(LANES, np.float32), 0
    if packed.zeros_PGL is not None:
        zeros, zero_step = packed.zeros_PGL.reshape(-1), 1
    y = np.empty(rows * panels * LANES, np.float32)
    if rows:
        _multiply(
            x.reshape(-1), rows, packed.blocks_PB.reshape(-1), in_panel,
            packed.group // packed.depth, packed.depth, packed.scales_PGL.reshape(-1), zeros,
            zero_step, y, panels,
        )  # fmt: skip
    return torch.from_numpy(y.reshape(rows, panels * LANES)[:, : packed.outputs])


VARIANT = Variant(
    name="panels_cpu",
    about="codes of any width go from packed words to registers; a row's bits same in any batch",
    device="cpu",
    call=quantised_matmul,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
)
