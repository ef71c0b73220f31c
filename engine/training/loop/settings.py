"""Training config: steps, learning-rate schedule, batch shape, optimiser and precision."""

from typing import Literal

from engine.core.config import Config, knob

BETA1 = 0.9  # AdamW's memory of gradients


class Training(Config):
    """How long, how fast and on what shape of batch a language model learns."""

    seed: int = knob(0, "Seed of fresh weights and of the choice of windows", low=0, high=2**31)
    steps: int = knob(2000, "Optimiser steps", low=1, high=1_000_000, unit="steps")
    warmup: int = knob(100, "Steps up to the peak rate", low=0, high=100_000, unit="steps")
    decay: int = knob(400, "Last steps, down to no rate", low=0, high=100_000, unit="steps")
    rate: float = knob(2e-3, "Peak learning rate", low=1e-6, high=1.0, log=True)
    tokens: int = knob(4096, "Tokens in a step", low=8, high=1 << 20, unit="tokens")
    context: int = knob(512, "Window until the decay", low=8, high=8192, unit="tokens")
    long_context: int = knob(1024, "Window in the decay", low=8, high=8192, unit="tokens")
    weight_decay: float = knob(0.1, "AdamW's decay of matrices", low=0.0, high=1.0)
    beta2: float = knob(0.95, "AdamW's memory of squared gradients", low=0.5, high=0.9999)
    eps: float = knob(1e-8, "AdamW's, added to the root of squared gradients", low=1e-12, high=1.0,
                      log=True)  # fmt: skip
    clip: float = knob(1.0, "Largest gradient norm", low=1e-3, high=1e3)
    precision: Literal["bfloat16", "float32"] = knob(
        "bfloat16", "Matrix products of the forward; float32 where a processor has no narrower ones"
    )
    report: int = knob(10, "Steps between loss reports", low=1, high=10_000, unit="steps")
    evaluate: int = knob(250, "Steps between validations", low=1, high=100_000, unit="steps")
    checkpoint: int = knob(100, "Steps between checkpoints", low=1, high=100_000, unit="steps")

    def window(self, step: int) -> int:
        """Tokens in each window of this step."""
        return self.long_context if step >= self.steps - self.decay else self.context

    def rows(self, step: int) -> int:
        """Windows in this step."""
        return max(1, self.tokens // self.window(step))

    def tokens_seen(self) -> int:
        """Tokens predicted over all steps, repeated ones counted again."""
        return sum(self.rows(step) * self.window(step) for step in range(self.steps))
