"""Shapes that products are held to and timed at."""

from functools import partial

import torch

from engine.kernels.matmul.pack import pack
from engine.kernels.operator import Arguments, Case


def made(
    rows: int, outputs: int, inputs: int, weight: str, seed: int, dtype: torch.dtype
) -> Arguments:
    """Random rows and weight. `weight`: "same" dtype, "bfloat16", or "packed" panels."""
    draw = torch.Generator().manual_seed(seed)
    x_MK = torch.randn(rows, inputs, generator=draw).to(dtype)
    weight_NK = torch.randn(outputs, inputs, generator=draw)
    if weight == "packed":
        return {"x_MK": x_MK, "weight_NK": pack(weight_NK.to(dtype))}
    kind = torch.bfloat16 if weight == "bfloat16" else dtype
    return {"x_MK": x_MK, "weight_NK": weight_NK.to(kind)}


def case(rows: int, outputs: int, inputs: int, weight: str = "same") -> Case:
    """A case by its shape."""
    name = f"{rows}x{outputs}x{inputs}" + ("" if weight == "same" else f"-{weight}")
    return Case(name, partial(made, rows, outputs, inputs, weight))


CASES = (
    case(1, 1, 1),
    case(3, 33, 7),
    case(17, 100, 65),
    case(70, 48, 130),
    case(2, 40, 64, "bfloat16"),
    case(0, 5, 3),
)
SIZES = (
    case(1, 4096, 4096),
    case(1, 4096, 4096, "packed"),
    case(16, 4096, 4096, "packed"),
    case(512, 2048, 2048),
)
