"""Triton on a GPU; without one the same kernels run through Triton's interpreter, never timed."""

from typing import Any

import numpy as np
import torch
import triton
from torch import Tensor

from engine.kernels.experiments.stream.backend import Backend
from engine.kernels.triton_source import kernels

BLOCK = 1024
SOURCE = "engine.kernels.experiments.stream.vectors_triton"
GPU = torch.cuda.is_available()


def place(x_N: np.ndarray) -> Tensor:
    """A copy on the GPU, or the same memory where there is none."""
    found = torch.from_numpy(x_N)
    return found.cuda() if GPU else found


def _launch(name: str, out_N: Tensor, *given: Any) -> None:
    # A float argument would arrive as float32: the factor travels as a float64 of its own.
    module = kernels(SOURCE, interpreted=not out_N.is_cuda)
    count = len(out_N)
    block = BLOCK if out_N.is_cuda else triton.next_power_of_2(max(count, 1))
    factor = torch.tensor([given[-1]], dtype=torch.float64, device=out_N.device)
    if count:
        grid = (triton.cdiv(count, block),)
        getattr(module, name)[grid](out_N, *given[:-1], factor, count, BLOCK=block)


def scaled(out_N: Tensor, x_N: Tensor, factor: float) -> None:
    """out = factor · x."""
    _launch("scaled", out_N, x_N, factor)


def summed(out_N: Tensor, x_N: Tensor, y_N: Tensor, factor: float) -> None:
    """out = x + factor · y."""
    _launch("summed", out_N, x_N, y_N, factor)


def ready() -> None:
    """Wait for the GPU."""
    if GPU:
        torch.cuda.synchronize()


BACKEND = Backend(
    name="triton",
    about="Triton on a GPU",
    scaled=scaled,
    summed=summed,
    rank=6,
    place=place,
    fetch=lambda x_N: np.asarray(x_N.cpu().numpy()),
    ready=ready,
    streams=True,
    interpreted=not GPU,
)
