"""A layer's norm with its weight prepared: RMS (arXiv 1910.07467) or layer norm.

Shape letters: T tokens, C hidden.
"""

from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.gathered import Gathered
from engine.models.layers import float32_at_least


class Norm:
    """The config's norm with the weights of `role`."""

    def __init__(self, config: ModelConfig, weights: Gathered, role: str) -> None:
        self.weight_C = weights.take(role)
        if config.norm_offset:  # in float32: 1 + a small weight would not survive bfloat16
            self.weight_C = float32_at_least(self.weight_C) + config.norm_offset
        self.bias_C = weights.take(f"{role}.bias") if config.norm == "layer" else None
        self.eps = config.norm_eps
        self.rms_norm = weights.ops.rms_norm

    def __call__(self, x_TC: Tensor) -> Tensor:
        """The normalised x_TC."""
        if self.bias_C is None:
            return self.rms_norm(x_TC, self.weight_C, self.eps)
        weight_C, bias_C = self.weight_C.to(x_TC.dtype), self.bias_C.to(x_TC.dtype)
        return nn.functional.layer_norm(x_TC, weight_C.shape, weight_C, bias_C, self.eps)
