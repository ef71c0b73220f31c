"""The dense feed-forward: down(act(gate) · up), or down(act(up)) where the config has no gate."""

from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.gathered import Gathered
from engine.models.layers import ACTIVATIONS


class FeedForward:
    """One layer's dense feed-forward; `prefix` picks the shared expert of a mixture."""

    def __init__(self, config: ModelConfig, weights: Gathered, prefix: str = "") -> None:
        gate = [f"{prefix}gate"] if config.gated else []
        self.into = weights.linear(*gate, f"{prefix}up")
        self.down = weights.linear(f"{prefix}down")
        self.act = ACTIVATIONS[config.activation]
        self.gated = config.gated
        self.swiglu = weights.ops.swiglu if config.activation == "silu" else None

    def __call__(self, x_TC: Tensor) -> Tensor:
        """y_TC for normalised x_TC."""
        inner = self.into(x_TC)
        if not self.gated:
            return self.down(self.act(inner))
        gate, up = inner.chunk(2, dim=-1)
        return self.down(self.swiglu(gate, up) if self.swiglu else self.act(gate) * up)
