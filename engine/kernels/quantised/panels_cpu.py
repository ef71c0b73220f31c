"""Product of rows with a packed quantised weight (numba): codes are unpacked in registers only."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import kernel
from engine.kernels.lanes import LANES
from engine.kernels.operator import Variant
from engine.kernels.quantised.pack import TOGETHER, Packed, pack
from engine.kernels.quantised.tile import tile
from engine.kernels.quantised.weight import Quantised

ROWS = 4  # that share the unpacking of a code

_one, _four = tile(1, TOGETHER), tile(ROWS, TOGETHER)


@kernel
def _multiply(
    x, rows, width, blocks, in_panel, in_group, scales, zeros, zero_step, sums, groups, y, panels
):
    wide = panels * LANES
    by_panel = groups * LANES
    for index in prange(panels // TOGETHER):
        panel = np.int64(index) * TOGETHER
        for row in range(rows):
            for i in range(row * wide + panel * LANES, row * wide + (panel + TOGETHER) * LANES):
                y[i] = np.float32(0)
        row = 0
        while row < rows:
            left = rows - row
            for group in range(groups):
                first = group * in_group
                count = min(in_group, in_panel - first)
                x_at = row * width + first * (width // in_panel)
                scale_at = panel * by_panel + group * LANES
                if left == 1:
                    _one(
                        x, x_at, width, 1, blocks, panel * in_panel + first, in_panel, count,
                        scales, scale_at, by_panel, zeros, scale_at * zero_step,
                        by_panel * zero_step, sums, row * groups + group, groups, y,
                        row * wide + panel * LANES, wide,
                    )  # fmt: skip
                else:
                    _four(
                        x, x_at, width, left, blocks, panel * in_panel + first, in_panel, count,
                        scales, scale_at, by_panel, zeros, scale_at * zero_step,
                        by_panel * zero_step, sums, row * groups + group, groups, y,
                        row * wide + panel * LANES, wide,
                    )  # fmt: skip
            row += 1 if left == 1 else ROWS


def quantised_matmul(x_MK: Tensor, weight: Quantised | Packed) -> Tensor:
    """y_MN = x · Wᵀ in float32; `x_MK` is taken as float32. A weight not packed is packed first."""
    packed = weight if isinstance(weight, Packed) else pack(weight)
    rows, inputs = x_MK.shape
    panels, in_panel = packed.blocks_PB.shape
    groups, width = packed.scales_PGL.shape[1], in_panel * packed.depth
    x = np.zeros((rows, width), np.float32)
    x[:, :inputs] = x_MK.detach().float().numpy()
    in_group = packed.group // packed.depth
    sums, zeros, zero_step = np.zeros(rows * groups, np.float32), np.zeros(LANES, np.float32), 0
    if packed.zeros_PGL is not None:
        starts = np.arange(groups) * packed.group
        sums = np.add.reduceat(x, starts, axis=1).astype(np.float32).reshape(-1)
        zeros, zero_step = packed.zeros_PGL.reshape(-1), 1
    y = np.empty(rows * panels * LANES, np.float32)
    if rows:
        _multiply(
            x.reshape(-1), rows, width, packed.blocks_PB.reshape(-1), in_panel, in_group,
            packed.scales_PGL.reshape(-1), zeros, zero_step, sums, groups, y, panels,
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
