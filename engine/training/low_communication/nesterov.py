"""The outer optimiser of DiLoCo: gradient descent with Nesterov's momentum on outer gradients."""

import torch
from torch import Tensor


class Nesterov:
    """State for P parameters (DiLoCo, arXiv 2311.08105, algorithm 1)."""

    def __init__(self, weights_P: Tensor, rate: float, momentum: float) -> None:
        self.weights_P = weights_P.clone()
        self.rate, self.momentum = rate, momentum
        self.velocity_P = torch.zeros_like(weights_P)

    def step(self, outer_gradient_P: Tensor) -> Tensor:
        """The outer weights after one step; the caller must not write into them."""
        self.velocity_P.mul_(self.momentum).add_(outer_gradient_P)
        self.weights_P.sub_(self.rate * (outer_gradient_P + self.momentum * self.velocity_P))
        return self.weights_P
