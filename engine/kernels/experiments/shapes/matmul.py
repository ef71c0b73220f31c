"""A matrix product at a chosen shape."""

from collections.abc import Iterator
from typing import Literal

from engine.core.config import knob
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operator


class Matmul(Shapes):
    """A product of activations with a weight."""

    kind: Literal["matmul"] = "matmul"
    rows: int = knob(512, "Rows of activations", low=1, high=1 << 12, log=True)
    outputs: int = knob(2048, "Outputs", low=1, high=1 << 13, log=True)
    inputs: int = knob(2048, "Inputs", low=1, high=1 << 13, log=True)

    def numbers(self) -> int:
        return self.rows * (self.inputs + self.outputs) + self.inputs * self.outputs

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        from engine.kernels.matmul.cases import case

        yield operator("matmul"), case(self.rows, self.outputs, self.inputs)
