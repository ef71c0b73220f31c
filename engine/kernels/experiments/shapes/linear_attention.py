"""Gated linear attention at a chosen shape."""

from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class LinearAttention(Shapes):
    """Gated linear attention of one sequence."""

    kind: Literal["linear_attention"] = "linear_attention"
    tokens: int = knob(2048, "Tokens", low=1, high=1 << 16, log=True)
    heads: int = knob(8, "Heads", low=1, high=64, log=True)
    dim: int = knob(64, "Numbers in a head", low=8, high=256, log=True)

    def numbers(self) -> int:
        return 5 * self.tokens * self.heads * self.dim

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.linear_attention.cases import case

        yield operator("linear_attention"), case(1, self.heads, self.tokens, self.dim, self.dim)
