"""Shapes that rotation is held to and timed at."""

from functools import partial

import torch

from engine.kernels.operator import Arguments, Case


def made(tokens: int, heads: int, dim: int, seed: int, dtype: torch.dtype) -> Arguments:
    """Random heads, and angles of a few turns."""
    draw = torch.Generator().manual_seed(seed)
    angles_TF = torch.randn(tokens, dim // 2, generator=draw) * 9
    return {
        "x_THD": torch.randn(tokens, heads, dim, generator=draw).to(dtype),
        "cos_TF": angles_TF.cos().to(dtype),
        "sin_TF": angles_TF.sin().to(dtype),
    }


def case(tokens: int, heads: int, dim: int) -> Case:
    """A case by its shape."""
    return Case(f"{tokens}x{heads}x{dim}", partial(made, tokens, heads, dim))


CASES = tuple(case(*shape) for shape in ((1, 1, 2), (3, 2, 10), (4, 5, 64), (2, 40, 6), (0, 2, 8)))
SIZES = (case(1, 32, 128), case(512, 32, 128))
