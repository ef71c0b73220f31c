"""Shapes: the choice of operators, and of the sizes to run each at, that a sweep is given."""

from abc import abstractmethod
from collections.abc import Iterator

from engine.core.config import Policy
from engine.kernels.operator import Case, Operator


class Shapes(Policy):
    """The choice of what to run."""

    folder = "engine.kernels.experiments.shapes"

    @abstractmethod
    def cases(self) -> Iterator[tuple[Operator, Case]]:
        """Operators with the shapes to run them at."""

    def numbers(self) -> int:
        """Numbers in inputs and results of its largest shape; 0 where that fits anywhere."""
        return 0
