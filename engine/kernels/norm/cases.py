"""Shapes that RMS norm is held to and timed at."""

from functools import partial

import torch

from engine.kernels.operator import Arguments, Case


def made(rows: int, width: int, seed: int, dtype: torch.dtype) -> Arguments:
    """Random rows and weights."""
    draw = torch.Generator().manual_seed(seed)
    return {
        "x_TC": torch.randn(rows, width, generator=draw).to(dtype),
        "weight_C": torch.randn(width, generator=draw).to(dtype),
        "eps": 1e-5,
    }


def case(rows: int, width: int) -> Case:
    """A case by its shape."""
    return Case(f"{rows}x{width}", partial(made, rows, width))


CASES = tuple(case(*shape) for shape in ((1, 1), (3, 15), (5, 16), (2, 40), (7, 768), (0, 8)))
SIZES = (case(1, 4096), case(512, 4096))
