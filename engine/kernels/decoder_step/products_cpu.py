"""The step's products with its matrices (numba): each in its own number format, by address.

A matrix is a row of addresses and counts (`row`), its format the type its product was compiled
for: the step itself is compiled once, whatever its weights, and formats may differ by matrix.
"""

from typing import TypeAlias

import numpy as np
from numba import carray, types

from engine.kernels.compiled import address, body, call, emitted, inner, is_cached
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import Packed as Plain
from engine.kernels.matmul.panels_cpu import add_product
from engine.kernels.quantised.pack import Packed as Codes
from engine.kernels.quantised.panels_cpu import add_quantised

# Numbers of a matrix: where its product, its data, its scales and zeros (0: none) begin; panels;
# elements between panels; blocks of a group and inputs of a block (codes only).
CALL, DATA, SCALES, ZEROS, PANELS, PANEL, GROUP, DEPTH = range(8)
FIELDS = 8
NOTHING = np.zeros(0, np.uint32)

Matrix: TypeAlias = Plain | Codes


@emitted
def pointer(context, address, like):
    """The address as a pointer to elements of `like`'s type."""
    signature = types.CPointer(like.dtype)(types.int64, like)

    def emit(target, builder, signature, args):
        kind = target.get_value_type(signature.return_type)
        return builder.inttoptr(args[0], kind)

    return signature, emit


@body
def _plain(
    matrices, at, like, x, x_at, x_stride, rows, depth, first, last, y, y_at, y_stride
):  # fmt: skip
    size = matrices[at + PANELS] * matrices[at + PANEL]
    data = carray(pointer(matrices[at + DATA], like), (size,))
    add_product(
        x, x_at, x_stride, rows, data, 0, LANES, matrices[at + PANEL], depth, first, last, y, y_at,
        y_stride,
    )  # fmt: skip


@body
def _codes(
    matrices, at, like, x, x_at, x_stride, rows, depth, first, last, y, y_at, y_stride
):  # fmt: skip
    in_panel, in_group = matrices[at + PANEL], matrices[at + GROUP]
    size = matrices[at + PANELS] * ((in_panel + in_group - 1) // in_group) * LANES
    blocks = carray(pointer(matrices[at + DATA], like), (matrices[at + PANELS] * in_panel,))
    scales = carray(pointer(matrices[at + SCALES], x), (size,))
    zeros, step = scales, 0
    if matrices[at + ZEROS]:
        zeros, step = carray(pointer(matrices[at + ZEROS], x), (size,)), 1
    add_quantised(
        x, x_at, x_stride, rows, blocks, in_panel, in_group, matrices[at + DEPTH], scales, zeros,
        step, first, last, y, y_at, y_stride,
    )  # fmt: skip


@inner
def add(weights, number, x, x_stride, rows, depth, first, last, y, y_at, y_stride):
    """y[:, y_at + 16·first : y_at + 16·last] += x · W of matrix `number`."""
    at = number * FIELDS
    call(
        weights.matrices[at + CALL],
        (weights.matrices, at, weights.like, x, np.int64(0), x_stride, rows, depth, first, last, y,
         y_at, y_stride),
    )  # fmt: skip


def _typed(like: np.ndarray) -> tuple[object, ...]:
    """The product for data of that array's type, and arguments like its own."""
    floats, longs = np.zeros(1, np.float32), np.zeros(1, np.int64)
    function = _plain if like.dtype.names is None else _codes
    return function, longs, 0, like[:0], floats, 0, 0, 0, 0, 0, 0, floats, 0, 0


def product_of(like: np.ndarray) -> int:
    """Address of the product for matrices whose data is of that array's type; compiled if new.

    The step calls it with an empty array of another type in `like`'s place, which lies in memory
    alike and is read by nobody.
    """
    return address(*_typed(like))


def product_ready(like: np.ndarray) -> bool:
    """Whether that product is compiled already."""
    return is_cached(*_typed(like))


def row(matrix: Matrix) -> list[int]:
    """What the step has to know of a matrix, whose arrays must outlive it."""
    if isinstance(matrix, Codes):
        in_panel, panels = matrix.blocks_PB.shape[1], -(-matrix.outputs // LANES)
        blocks, zeros = matrix.blocks_PB.reshape(-1), matrix.zeros_PGL
        return [
            product_of(blocks), blocks.ctypes.data, matrix.scales_PGL.ctypes.data,
            0 if zeros is None else zeros.ctypes.data, panels, in_panel,
            matrix.group // matrix.depth, matrix.depth,
        ]  # fmt: skip
    panel = matrix.data.size // max(matrix.panels, 1)
    return [product_of(matrix.data), matrix.data.ctypes.data, 0, 0, matrix.panels, panel, 0, 0]
