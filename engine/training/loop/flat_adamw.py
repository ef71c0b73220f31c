"""AdamW on one flat vector of parameters, so that what is exchanged is one vector too."""

import torch
from torch import Tensor


class FlatAdamW:
    """Moments of P parameters (Loshchilov and Hutter, arXiv 1711.05101).

    `decay_P`: the decay of each parameter. Once `freeze` was called the variance stays.
    """

    def __init__(self, decay_P: Tensor, beta1: float, beta2: float, eps: float = 1e-8) -> None:
        self.decay_P, self.beta1, self.beta2, self.eps = decay_P, beta1, beta2, eps
        self.momentum_P = torch.zeros_like(decay_P)
        self.variance_P = torch.zeros_like(decay_P)
        self.count = 0
        self.frozen_P: Tensor | None = None

    def update(self, weights_P: Tensor, gradient_P: Tensor, rate: float) -> None:
        """One step in place from a gradient."""
        self.momentum_P.lerp_(gradient_P, 1 - self.beta1)
        self.variance_P.lerp_(gradient_P * gradient_P, 1 - self.beta2)
        self.count += 1
        self.move(weights_P, rate)

    def freeze(self) -> None:
        """Divide by today's variance from now on."""
        self.frozen_P = self._root()

    def move(self, weights_P: Tensor, rate: float) -> None:
        """Step along the momentum as it is."""
        root_P = self._root() if self.frozen_P is None else self.frozen_P
        ahead_P = self.momentum_P / (1 - self.beta1**self.count)
        weights_P.sub_(rate * (ahead_P / root_P + self.decay_P * weights_P))

    def _root(self) -> Tensor:
        return (self.variance_P / (1 - self.beta2**self.count)).sqrt_() + self.eps
