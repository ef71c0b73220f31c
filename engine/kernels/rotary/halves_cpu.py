"""Rotation of head halves, a token a task (numba)."""

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.operator import Variant
from engine.kernels.rows import part


@inner
def rotate_head(x, x_at, half, turn, turn_at):
    """Rotate one head of 2 · `half` numbers in place; `turn` holds its cosines, then its sines."""
    first, second = part(x, x_at), part(x, x_at + half)
    cos, sin = part(turn, turn_at), part(turn, turn_at + half)
    for i in range(half):
        a, b = first[i], second[i]
        first[i] = a * cos[i] - b * sin[i]
        second[i] = b * cos[i] + a * sin[i]


@kernel
def _rotate(x, tokens, heads, half, turn):
    for index in prange(tokens):
        token = np.int64(index)
        for head in range(heads):
            rotate_head(x, (token * heads + head) * 2 * half, half, turn, token * 2 * half)


def rotate(x_THD: Tensor, cos_TF: Tensor, sin_TF: Tensor) -> Tensor:
    """Dimension i turned with dimension i + D/2 by the token's angle, in float32; a new tensor."""
    x = np.array(x_THD.detach().float().numpy(), order="C")
    turn = np.ascontiguousarray(torch.cat([cos_TF, sin_TF], dim=-1).float().numpy())
    tokens, heads, dim = x.shape
    _rotate(x.reshape(-1), tokens, heads, dim // 2, turn.reshape(-1))
    return torch.from_numpy(x)


VARIANT = Variant(
    name="halves_cpu",
    about="a token a task",
    device="cpu",
    call=rotate,
    dtypes=("float32", "bfloat16", "float16"),
)
