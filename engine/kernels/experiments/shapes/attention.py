"""Prefill attention at a chosen shape."""

import math
from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class Attention(Shapes):
    """Causal attention of one sequence over itself."""

    kind: Literal["attention"] = "attention"
    tokens: int = knob(1024, "Tokens", low=1, high=1 << 14, log=True)
    heads: int = knob(8, "Query heads", low=1, high=64, log=True)
    kv_heads: int = knob(
        8, "Key and value heads, lowered to a divisor of the query heads", low=1, high=64
    )
    dim: int = knob(64, "Numbers in a head", low=8, high=256, log=True)

    def numbers(self) -> int:
        return 2 * self.tokens * (self.heads + self.kv_heads) * self.dim

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.attention.cases import case

        kv_heads = math.gcd(self.heads, self.kv_heads)
        name = f"{self.heads}:{kv_heads}x{self.tokens}x{self.dim}"
        yield operator("attention"), case(name, (self.tokens,), self.heads, kv_heads, self.dim)
