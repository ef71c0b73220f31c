"""Product of rows with packed codes in integers (numba), eight rows by two panels at a time.

Each row is quantised once (`activations`); sums of a tile stay in registers (`tile`).
"""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.integer_matmul.activations import BEFORE, group_of, quantise, room
from engine.kernels.integer_matmul.tile import takes, tile
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import aligned
from engine.kernels.matmul.panels_cpu import task_panels
from engine.kernels.operator import Arguments, Variant
from engine.kernels.quantised.pack import TOGETHER, Packed, pack
from engine.kernels.quantised.weight import Quantised

FEW, MANY = 4, 8  # rows of a tile
PAIR = 2  # panels beside many rows
SPARE_AT = 16

_one, _single, _few, _many = tile(1, TOGETHER), tile(1, 1), tile(FEW, TOGETHER), tile(MANY, PAIR)


@inner
def hold_rows(x, x_at, x_stride, rows, inputs, group, like, held, held_at):
    """Rows of `inputs` numbers, quantised as `like`'s format wants them, from `held_at` on."""
    words, groups = inputs // 4, (inputs + group - 1) // group
    first = held_at + BEFORE
    begins = first + rows * words
    for row in range(rows):
        quantise(
            x, x_at + row * x_stride, inputs, group, like, held, first + row * words,
            begins + row * groups, begins + (rows + row) * groups,
        )  # fmt: skip


@inner
def add_integers(
    held, held_at, rows, blocks, in_panel, in_group, share, words, scales, zeros, scale_groups,
    first, last, y, y_at, y_stride, ahead, panels,
):  # fmt: skip
    """y[:, 16·first : 16·last] += x · W over `rows` rows that `hold_rows` put at `held_at`.

    `in_panel`: blocks of a panel, `in_group` of a group of activations, `share` of which take one
    of the `scale_groups` scales; `words`: of a row's codes, four each. `zeros` may be None.
    """
    groups = (in_panel + in_group - 1) // in_group
    spare, x_at, by_panel = held_at + SPARE_AT, held_at + BEFORE, scale_groups * LANES
    begin_at = x_at + rows * words
    panel = first
    while panel < last:
        wide = TOGETHER if last - panel >= TOGETHER else 1
        later = ahead if panel + ahead + wide <= panels else 0
        at, scale_at, row = panel * in_panel, panel * by_panel, 0
        while row < rows:
            left = rows - row if wide == TOGETHER else 1
            xs, begins = x_at + row * words, begin_at + row * groups
            ranges, ys = begins + rows * groups, y_at + panel * LANES + row * y_stride
            if wide == 1:
                _single(
                    held, spare, xs, words, begins, ranges, groups, 1, blocks, at, in_panel,
                    in_group, share, scales, zeros, scale_at, by_panel, y, ys, y_stride, later,
                )  # fmt: skip
            elif left == 1:
                _one(
                    held, spare, xs, words, begins, ranges, groups, 1, blocks, at, in_panel,
                    in_group, share, scales, zeros, scale_at, by_panel, y, ys, y_stride, later,
                )  # fmt: skip
            elif left <= FEW:
                _few(
                    held, spare, xs, words, begins, ranges, groups, left, blocks, at, in_panel,
                    in_group, share, scales, zeros, scale_at, by_panel, y, ys, y_stride, later,
                )  # fmt: skip
            else:
                for more in range(0, TOGETHER, PAIR):
                    _many(
                        held, spare, xs, words, begins, ranges, groups, left, blocks,
                        at + more * in_panel, in_panel, in_group, share, scales, zeros,
                        scale_at + more * by_panel, by_panel, y, ys + more * LANES, y_stride,
                        later,
                    )  # fmt: skip
            row += 1 if left == 1 else FEW if left <= FEW else MANY
        panel += wide


@kernel
def _multiply(
    x, rows, inputs, group, held, blocks, in_panel, in_group, share, scales, zeros, scale_groups, y,
    panels,
):  # fmt: skip
    hold_rows(x, 0, inputs, rows, inputs, group, blocks, held, 0)
    wide, unit = panels * LANES, task_panels(rows, panels, 1)
    start = np.int64(0)
    for index in prange(panels // unit):
        first = np.int64(index) * unit
        for row in range(rows):
            for i in range(row * wide + first * LANES, row * wide + (first + unit) * LANES):
                y[i] = np.float32(0)
        add_integers(
            held, start, rows, blocks, in_panel, in_group, share, inputs // 4, scales, zeros,
            scale_groups, first, first + unit, y, start, wide, TOGETHER + start, panels,
        )  # fmt: skip


def integer_matmul(x_MK: Tensor, weight: Quantised | Packed) -> Tensor:
    """y_MN = x · Wᵀ in float32, x quantised to 8 bits by row and group. A weight not packed is
    packed first; its format must be one that `takes`."""
    packed = weight if isinstance(weight, Packed) else pack(weight)
    rows, given = x_MK.shape
    panels, in_panel = packed.blocks_PB.shape
    inputs = in_panel * packed.depth
    x = np.zeros((rows, inputs), np.float32)
    x[:, :given] = x_MK.detach().float().numpy()
    group = group_of(packed.group, inputs)
    in_group, scale_groups = group // packed.depth, packed.scales_PGL.shape[1]
    zeros = None if packed.zeros_PGL is None else packed.zeros_PGL.reshape(-1)
    y = np.empty(rows * panels * LANES, np.float32)
    if rows:
        _multiply(
            x.reshape(-1), rows, inputs, group, aligned(room(rows, inputs, group), np.int32),
            packed.blocks_PB.reshape(-1), in_panel, in_group, -(-packed.group // group),
            packed.scales_PGL.reshape(-1), zeros, scale_groups, y, panels,
        )  # fmt: skip
    return torch.from_numpy(y.reshape(rows, panels * LANES)[:, : packed.outputs])


def _refuses(arguments: Arguments) -> str:
    of = arguments["weight"].format
    return "" if takes(of) else f"takes integers of 2, 4 or 8 bits, not {of.name}"


VARIANT = Variant(
    name="integers_cpu",
    about="activations of 8 bits by row and group, sums in int32; a row's bits same in any batch",
    device="cpu",
    call=integer_matmul,
    dtypes=("float32", "bfloat16", "float16"),
    refuses=_refuses,
)
