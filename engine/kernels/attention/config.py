"""What an attention run is made from."""

import numpy as np

from engine.core.config import Choice, Config, knob
from engine.kernels.attention.executors.real import Real
from engine.kernels.attention.policies.row_blocks import RowBlocks
from engine.kernels.attention.policies.tiled import Tiled
from engine.kernels.attention.policy import Scores, Split, Workers
from engine.kernels.attention.problem import Problem


class AttentionConfig(Config):
    """Shape, mask, and how the work is done."""

    split: Choice[Split] = knob(make=RowBlocks, doc="What a worker takes at once")
    scores: Choice[Scores] = knob(make=Tiled, doc="What becomes of scores between the products")
    workers: Choice[Workers] = knob(make=Real, doc="Who does the work")
    kv_heads: int = knob(1, "Key and value heads", low=1, high=64, log=True)
    share: int = knob(1, "Query heads for each key head", low=1, high=16, log=True)
    tokens: int = knob(
        1536, "Tokens of the longest sequence", low=16, high=65536, unit="tokens", log=True
    )
    sequences: int = knob(1, "Sequences", low=1, high=64, log=True)
    spread: float = knob(0.0, "How much shorter the shortest sequence may be", low=0.0, high=0.95)
    dim: int = knob(64, "Size of a head", low=8, high=256, log=True)
    causal: bool = knob(True, "A token sees none after itself")
    backward: bool = knob(True, "Gradients too")
    checked: bool = knob(True, "Hold results to the float64 reference", group="more")
    seed: int = knob(0, "Seed of inputs and lengths", low=0, high=2**31 - 1, group="more")

    @property
    def lengths(self) -> list[int]:
        """Tokens of each sequence: the first is the longest."""
        draw = np.random.default_rng(self.seed).uniform(1 - self.spread, 1, self.sequences - 1)
        return [self.tokens, *(max(1, round(self.tokens * part)) for part in draw)]

    def problem(self) -> Problem:
        """The problem it describes."""
        heads = self.kv_heads * self.share
        return Problem(
            self.lengths, heads, self.kv_heads, self.dim, self.causal, self.backward, self.seed
        )
