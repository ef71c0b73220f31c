"""Columns by address (numba): many arrays in one argument of a kernel.

A simulator's kernels go over some thirty columns and take a few microseconds, half of which would
go by handing these over one by one. A table says where each begins and its sizes; its owner keeps
the columns, and makes another table when it replaces one.
"""

from collections.abc import Sequence
from ctypes import addressof, c_char

import numpy as np
from numba import carray, types

from engine.kernels.compiled import emitted, inner


def addresses(columns: Sequence[np.ndarray]) -> np.ndarray:
    """[N, 3] int64: where each of N columns begins, its rows, and its numbers a row."""
    for column in columns:
        assert column.flags.c_contiguous and column.ndim <= 2
    told = [(_begin(column), len(column), column.shape[-1]) for column in columns]
    return np.array(told, np.int64)


def _begin(column: np.ndarray) -> int:
    """Where its memory begins; numpy takes three times as long to say so."""
    return addressof(c_char.from_buffer(column)) if column.size else 0  # type: ignore[arg-type]


@emitted
def _place(context, address):
    signature = types.voidptr(types.int64)

    def emit(target, builder, signature, args):
        return builder.inttoptr(args[0], target.get_value_type(types.voidptr))

    return signature, emit


@inner
def int32s(at, n):
    return carray(_place(at[n, 0]), (at[n, 1],), np.int32)


@inner
def int32_rows(at, n):
    return carray(_place(at[n, 0]), (at[n, 1], at[n, 2]), np.int32)


@inner
def int64s(at, n):
    return carray(_place(at[n, 0]), (at[n, 1],), np.int64)


@inner
def uint64s(at, n):
    return carray(_place(at[n, 0]), (at[n, 1],), np.uint64)


@inner
def float64s(at, n):
    return carray(_place(at[n, 0]), (at[n, 1],), np.float64)


@inner
def bools(at, n):
    return carray(_place(at[n, 0]), (at[n, 1],), np.bool_)


@inner
def bool_rows(at, n):
    return carray(_place(at[n, 0]), (at[n, 1], at[n, 2]), np.bool_)
