"""Shapes that SwiGLU is held to and timed at."""

from functools import partial

import torch

from engine.kernels.operator import Arguments, Case


def made(rows: int, width: int, seed: int, dtype: torch.dtype) -> Arguments:
    """Gates on both sides of zero, side by side with what they gate, as projections leave them."""
    draw = torch.Generator().manual_seed(seed)
    both = torch.randn(rows, 2 * width, generator=draw)
    both[:, :width] *= 5
    gate_TC, up_TC = both.to(dtype).chunk(2, dim=-1)
    return {"gate_TC": gate_TC, "up_TC": up_TC}


def case(rows: int, width: int) -> Case:
    """A case by its shape."""
    return Case(f"{rows}x{width}", partial(made, rows, width))


CASES = tuple(case(*shape) for shape in ((1, 1), (3, 17), (2, 5000), (0, 4)))
SIZES = (case(1, 11008), case(512, 11008))
