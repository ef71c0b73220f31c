"""Conjugate gradients for many small systems at once, their matrices never formed.

In come right sides, one for each query, and a function that multiplies every query's matrix with
its own vector; out come solutions (Hestenes and Stiefel, 1952).
"""

from collections.abc import Callable

import torch
from torch import Tensor

TOLERANCE = 1e-6  # of each right side's length
ITERATIONS = 128


def solve(
    multiply: Callable[[Tensor], Tensor],
    right_TD: Tensor,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
    note: Callable[[Tensor], None] | None = None,
) -> Tensor:
    """x with A x = right for each query; A symmetric and positive, any leading axes.

    Stops once every residual is below `tolerance` of its right side, or after `iterations`; a
    query that has converged stands still. `note` is given the relative residuals before each step.
    """
    x, left = torch.zeros_like(right_TD), right_TD
    direction, size = left, left.square().sum(-1, keepdim=True)
    goal = size * tolerance**2
    for _ in range(iterations):
        if note is not None:
            note((size / right_TD.square().sum(-1, keepdim=True).clamp_min(1e-30)).sqrt())
        moving = size > goal
        if not bool(moving.any()):
            break
        turned = multiply(direction)
        step = size / (direction * turned).sum(-1, keepdim=True)
        step = torch.where(moving, step, 0.0)
        x = x + step * direction
        left = left - step * turned
        new = torch.where(moving, left.square().sum(-1, keepdim=True), size)
        direction = left + torch.where(moving, new / size, 0.0) * direction
        size = new
    return x
