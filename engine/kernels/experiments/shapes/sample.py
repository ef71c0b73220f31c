"""Sampling at a chosen shape."""

from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class Sample(Shapes):
    """The next token of each row of logits."""

    kind: Literal["sample"] = "sample"
    rows: int = knob(8, "Rows of logits", low=1, high=1024, log=True)
    vocab: int = knob(32000, "Tokens of the vocabulary", low=1, high=1 << 18, log=True)
    how: Literal["greedy", "open", "cut"] = knob(
        "greedy", "Likeliest, drawn, or drawn from the likeliest"
    )

    def numbers(self) -> int:
        return 2 * self.rows * self.vocab

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.sample.cases import case

        yield operator("sample"), case(self.rows, self.vocab, self.how)
