"""Shapes that sampling is held to and timed at."""

from functools import partial

import torch

from engine.kernels.operator import Arguments, Case


def made(rows: int, vocab: int, how: str, seed: int, dtype: torch.dtype) -> Arguments:
    """Random logits, and wishes that are all "greedy", all "open" or each "cut" another way.

    Logits of bfloat16 tie often, which is a case of its own.
    """
    draw = torch.Generator().manual_seed(seed)
    temperature = torch.full((rows,), 0.0 if how == "greedy" else 0.75)
    top_k, top_p, min_p = torch.zeros(rows, dtype=torch.int64), torch.ones(rows), torch.zeros(rows)
    if how == "cut":
        row = torch.arange(rows)
        top_k[row % 4 == 0] = min(5, vocab)
        top_p[row % 4 == 1] = 0.75
        min_p[row % 4 == 2] = 0.125
        top_k[row % 4 == 3], top_p[row % 4 == 3] = 40, 0.5
    return {
        "logits_RV": (torch.randn(rows, vocab, generator=draw) * 3).to(dtype),
        "temperature_R": temperature,
        "top_k_R": top_k,
        "top_p_R": top_p,
        "min_p_R": min_p,
        "seed_R": torch.randint(0, 2**62, (rows,), generator=draw),
        "position_R": torch.arange(rows) + 3,
    }


def case(rows: int, vocab: int, how: str) -> Case:
    """A case by its shape and how it is drawn."""
    return Case(f"{rows}x{vocab}-{how}", partial(made, rows, vocab, how))


CASES = (
    case(1, 1, "greedy"),
    case(5, 97, "greedy"),
    case(6, 97, "open"),
    case(4, 97, "cut"),
    case(2, 5000, "open"),
    case(0, 8, "open"),
)
SIZES = (case(8, 32000, "greedy"), case(8, 32000, "open"), case(8, 32000, "cut"))
