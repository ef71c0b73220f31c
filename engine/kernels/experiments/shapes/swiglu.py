"""The gated unit of a feed-forward at a chosen shape."""

from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class Swiglu(Shapes):
    """The gated unit over some rows."""

    kind: Literal["swiglu"] = "swiglu"
    rows: int = knob(512, "Rows", low=1, high=1 << 16, log=True)
    width: int = knob(11008, "Numbers in a row", low=1, high=1 << 16, log=True)

    def numbers(self) -> int:
        return 3 * self.rows * self.width

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.swiglu.cases import case

        yield operator("swiglu"), case(self.rows, self.width)
