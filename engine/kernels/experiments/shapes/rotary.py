"""Rotary positions at a chosen shape."""

from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class Rotary(Shapes):
    """Rotary positions of some tokens."""

    kind: Literal["rotary"] = "rotary"
    tokens: int = knob(512, "Tokens", low=1, high=1 << 16, log=True)
    heads: int = knob(32, "Heads", low=1, high=256, log=True)
    dim: int = knob(128, "Numbers in a head", low=2, high=512, log=True)

    def numbers(self) -> int:
        return 2 * self.tokens * self.heads * self.dim

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.rotary.cases import case

        yield operator("rotary"), case(self.tokens, self.heads, self.dim // 2 * 2)
