"""Decode attention over a paged cache at a chosen shape."""

import math
from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class PagedAttention(Shapes):
    """Decode attention: one new token a sequence over a paged cache."""

    kind: Literal["paged_attention"] = "paged_attention"
    batch: int = knob(8, "Sequences", low=1, high=256, log=True)
    context: int = knob(
        4096, "Tokens each has cached", low=1, high=1 << 17, unit="tokens", log=True
    )
    heads: int = knob(8, "Query heads", low=1, high=64, log=True)
    kv_heads: int = knob(
        8, "Key and value heads, lowered to a divisor of the query heads", low=1, high=64
    )
    dim: int = knob(64, "Numbers in a head", low=8, high=256, log=True)

    def numbers(self) -> int:
        return 2 * self.batch * self.context * self.kv_heads * self.dim

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.paged_attention.cases import case

        kv_heads = math.gcd(self.heads, self.kv_heads)
        name = f"{self.batch}x{self.heads}:{kv_heads}x{self.context}x{self.dim}"
        new, seen = [1] * self.batch, [self.context] * self.batch
        yield operator("paged_attention"), case(name, self.heads, kv_heads, self.dim, new, seen)
