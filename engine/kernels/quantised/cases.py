"""Shapes and formats that products with quantised weights are held to and timed at."""

from functools import partial

import torch

from engine.kernels.operator import Arguments, Case
from engine.kernels.quantised.pack import pack
from engine.kernels.quantised.weight import round_to_nearest


def made(
    rows: int, outputs: int, inputs: int, name: str, group: int, zero: bool, seed: int,
    dtype: torch.dtype,
) -> Arguments:  # fmt: skip
    """Random rows, and a random weight rounded to the format and packed."""
    draw = torch.Generator().manual_seed(seed)
    x_MK = torch.randn(rows, inputs, generator=draw).to(dtype)
    weight_NK = torch.randn(outputs, inputs, generator=draw)
    return {"x_MK": x_MK, "weight": pack(round_to_nearest(weight_NK, name, group, zero))}


def case(
    rows: int, outputs: int, inputs: int, name: str, group: int = 32, zero: bool = False
) -> Case:
    """A case by its shape and format; `group` 0 is a whole row."""
    shape = f"{rows}x{outputs}x{inputs}-{name}" + (f"-g{group}" if group else "")
    given = partial(made, rows, outputs, inputs, name, group, zero)
    return Case(shape + ("-zero" if zero else ""), given)


CASES = (
    case(1, 1, 1, "int4", 0),
    case(3, 33, 7, "int4"),
    case(9, 70, 130, "int4", 64, zero=True),
    case(1, 100, 65, "int5", 32, zero=True),
    case(2, 40, 64, "e4m3", 0),
    case(0, 5, 3, "int4"),
)
SIZES = (
    case(1, 4096, 4096, "int8", 128),
    case(1, 4096, 4096, "int4", 128),
    case(16, 4096, 4096, "int4", 128),
)
