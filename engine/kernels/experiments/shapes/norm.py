"""RMS norm at a chosen shape."""

from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class Norm(Shapes):
    """RMS norm of some rows."""

    kind: Literal["norm"] = "norm"
    rows: int = knob(512, "Rows", low=1, high=1 << 16, log=True)
    width: int = knob(4096, "Numbers in a row", low=1, high=1 << 16, log=True)

    def numbers(self) -> int:
        return 2 * self.rows * self.width

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.norm.cases import case

        yield operator("norm"), case(self.rows, self.width)
