"""The step's products with its matrices (numba): each in its own number format, by address.

A matrix is a row of addresses and counts (`row`), its format the type its product was compiled
for: the step itself is compiled once, whatever its weights, and formats may differ by matrix.
"""

from typing import TypeAlias

import numpy as np
from numba import carray, types

from engine.kernels import lanes
from engine.kernels.compiled import address, body, call, emitted, inner, is_cached
from engine.kernels.integer_matmul.activations import MOST, group_of, room
from engine.kernels.integer_matmul.integers_cpu import add_integers, hold_rows
from engine.kernels.integer_matmul.tile import takes
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import Packed as Plain
from engine.kernels.matmul.panels_cpu import TASK, add_product, task_panels
from engine.kernels.quantised.pack import Packed as Codes
from engine.kernels.quantised.panels_cpu import add_quantised

# Numbers of a matrix: where its product, its data, its scales and zeros (0: none) begin; panels;
# elements between panels; blocks of a group and inputs of a block (codes only); bytes of a panel;
# inputs of a group of activations (0: they are floats).
CALL, DATA, SCALES, ZEROS, PANELS, PANEL, GROUP, DEPTH, BYTES, SHARED = range(10)
FIELDS = 10
LINE = 64  # bytes of a cache line
BEGINNING = 2048  # bytes of a panel that are asked for before its turn: more follow by themselves
NOTHING = np.zeros(0, np.uint32)
NOBODY = -1  # whose rows a thread holds before it quantised any

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
    matrices, at, like, x, x_at, x_stride, rows, depth, first, last, y, y_at, y_stride, ahead,
    held, held_at, phase,
):  # fmt: skip
    size = matrices[at + PANELS] * matrices[at + PANEL]
    data = carray(pointer(matrices[at + DATA], like), (size,))
    add_product(
        x, x_at, x_stride, rows, data, 0, LANES, matrices[at + PANEL], depth, first, last, y, y_at,
        y_stride,
    )  # fmt: skip


@body
def _codes(
    matrices, at, like, x, x_at, x_stride, rows, depth, first, last, y, y_at, y_stride, ahead,
    held, held_at, phase,
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
        step, first, last, y, y_at, y_stride, ahead, matrices[at + PANELS],
    )  # fmt: skip


@inner
def _add_integers(
    matrices, at, like, zeros, x, x_at, x_stride, rows, first, last, y, y_at, y_stride, ahead, held,
    held_at, phase,
):  # fmt: skip
    """The product in integers; rows are quantised where the thread has not got the phase's yet."""
    in_panel, group, depth = matrices[at + PANEL], matrices[at + GROUP], matrices[at + DEPTH]
    inputs, shared = in_panel * depth, matrices[at + SHARED]
    groups, panels = (in_panel + group - 1) // group, matrices[at + PANELS]
    blocks = carray(pointer(matrices[at + DATA], like), (panels * in_panel,))
    scales = carray(pointer(matrices[at + SCALES], x), (panels * groups * LANES,))
    apart = inputs * LANES // matrices[at + BYTES]  # codes of a byte
    key = (phase * 8 + apart) * (MOST + 1) + shared
    if held[held_at] != key:
        held[held_at] = key
        hold_rows(x, x_at, x_stride, rows, inputs, shared, blocks, held, held_at)
    in_group = shared // depth
    add_integers(
        held, held_at, rows, blocks, in_panel, in_group, (group + in_group - 1) // in_group,
        inputs // 4, scales, zeros, groups, first, last, y, y_at, y_stride, ahead, panels,
    )  # fmt: skip


@body
def _integers(
    matrices, at, like, x, x_at, x_stride, rows, depth, first, last, y, y_at, y_stride, ahead,
    held, held_at, phase,
):  # fmt: skip
    _add_integers(
        matrices, at, like, None, x, x_at, x_stride, rows, first, last, y, y_at, y_stride, ahead,
        held, held_at, phase,
    )  # fmt: skip


@body
def _integers_zeros(
    matrices, at, like, x, x_at, x_stride, rows, depth, first, last, y, y_at, y_stride, ahead,
    held, held_at, phase,
):  # fmt: skip
    in_panel, group = matrices[at + PANEL], matrices[at + GROUP]
    size = matrices[at + PANELS] * ((in_panel + group - 1) // group) * LANES
    zeros = carray(pointer(matrices[at + ZEROS], x), (size,))
    _add_integers(
        matrices, at, like, zeros, x, x_at, x_stride, rows, first, last, y, y_at, y_stride, ahead,
        held, held_at, phase,
    )  # fmt: skip


@inner
def unit_of(matrices, number, rows, panels, threads):
    """How many panels a task of matrix `number` takes; of codes few: their panels are short, and
    what a task asks for ahead is its thread's next one."""
    if matrices[number * FIELDS + DEPTH]:
        return TASK
    return task_panels(rows, panels, threads)


@inner
def add(
    weights, number, x, x_stride, rows, depth, first, last, y, y_at, y_stride, ahead, buffers,
    thread, phase,
):  # fmt: skip
    """y[:, y_at + 16·first : y_at + 16·last] += x · W of matrix `number`.

    `ahead`: panels from each to the one that this thread is likely to come to next. In a `phase`
    all products have the same x, which a `thread` quantises once where they take integers.
    """
    at = number * FIELDS
    call(
        weights.matrices[at + CALL],
        (weights.matrices, at, weights.like, x, np.int64(0), x_stride, rows, depth, first, last, y,
         y_at, y_stride, ahead, buffers.held, thread * buffers.held_size, phase),
    )  # fmt: skip


@emitted
def _fetch(context, address):
    """Ask for the cache line at an address."""

    def emit(target, builder, signature, args):
        lanes.fetch(builder, builder.inttoptr(args[0], lanes.INT8.as_pointer()), 2)
        return target.get_dummy_value()

    return types.void(types.int64), emit


@inner
def ask(matrices, number, first, last):
    """Ask for where panels `first` to `last` of matrix `number` begin, before their product can."""
    at = number * FIELDS
    size, scales = matrices[at + BYTES], np.int64(0)
    if matrices[at + SCALES]:
        in_group = matrices[at + GROUP]
        scales = (matrices[at + PANEL] + in_group - 1) // in_group * LANES * 4
    for panel in range(first, min(last, matrices[at + PANELS])):
        for byte in range(0, size if size < BEGINNING else BEGINNING, LINE):
            _fetch(matrices[at + DATA] + panel * size + byte)
        for byte in range(0, scales if scales < BEGINNING else BEGINNING, LINE):
            _fetch(matrices[at + SCALES] + panel * scales + byte)


def _typed(like: np.ndarray, shared: int, zeros: bool) -> tuple[object, ...]:
    """The product for data of that array's type, and arguments like its own."""
    floats, longs, ints = np.zeros(1, np.float32), np.zeros(1, np.int64), np.zeros(1, np.int32)
    function = _plain if like.dtype.names is None else _codes
    if shared:
        function = _integers_zeros if zeros else _integers
    return function, longs, 0, like[:0], floats, *[0] * 6, floats, 0, 0, 0, ints, 0, 0


def product_of(like: np.ndarray, shared: int = 0, zeros: bool = False) -> int:
    """Address of the product for matrices whose data is of that array's type, and whose rows share
    a scale in groups of `shared` (0: floats); compiled if new.

    The step calls it with an empty array of another type in `like`'s place, which lies in memory
    alike and is read by nobody.
    """
    return address(*_typed(like, shared, zeros))


def product_ready(like: np.ndarray) -> bool:
    """Whether that product, of floats, is compiled already."""
    return is_cached(*_typed(like, 0, False))


def _shared(matrix: Codes) -> int:
    """Inputs that share a scale where a matrix's activations are quantised; 0: they stay floats."""
    inputs = matrix.blocks_PB.shape[1] * matrix.depth
    return group_of(matrix.group, inputs) if takes(matrix.format) else 0


def held_by(matrix: Matrix, rows: int) -> int:
    """int32 that a thread needs to hold so many rows as the matrix's integers take them."""
    if not isinstance(matrix, Codes) or not (shared := _shared(matrix)):
        return 0
    return room(rows, matrix.blocks_PB.shape[1] * matrix.depth, shared)


def row(matrix: Matrix, integers: bool = False) -> list[int]:
    """What the step has to know of a matrix, whose arrays must outlive it. `integers`: activations
    are quantised for it where its format allows."""
    if isinstance(matrix, Codes):
        in_panel, panels = matrix.blocks_PB.shape[1], -(-matrix.outputs // LANES)
        blocks, zeros = matrix.blocks_PB.reshape(-1), matrix.zeros_PGL
        shared = _shared(matrix) if integers else 0
        return [
            product_of(blocks, shared, zeros is not None), blocks.ctypes.data,
            matrix.scales_PGL.ctypes.data, 0 if zeros is None else zeros.ctypes.data, panels,
            in_panel, matrix.group // matrix.depth, matrix.depth, blocks.itemsize * in_panel,
            shared,
        ]  # fmt: skip
    panel = matrix.data.size // max(matrix.panels, 1)
    return [
        product_of(matrix.data), matrix.data.ctypes.data, 0, 0, matrix.panels, panel, 0, 0,
        panel * matrix.data.itemsize, 0,
    ]  # fmt: skip
