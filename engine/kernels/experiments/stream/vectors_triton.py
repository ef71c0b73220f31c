"""Assignments of float64 vectors: a block of numbers a program."""

import triton
import triton.language as tl


@triton.jit
def scaled(out, x, factor, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) * tl.load(factor), mask=inside)


@triton.jit
def summed(out, x, y, factor, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    product = tl.load(y + at, mask=inside) * tl.load(factor)
    tl.store(out + at, tl.load(x + at, mask=inside) + product, mask=inside)


COMPILES = (
    ("scaled", {"out": "*fp64", "x": "*fp64", "factor": "*fp64", "count": "i32"}, {"BLOCK": 1024}),
    (
        "summed",
        {"out": "*fp64", "x": "*fp64", "y": "*fp64", "factor": "*fp64", "count": "i32"},
        {"BLOCK": 1024},
    ),
)
