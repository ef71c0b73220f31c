"""Every operator at the sizes it is timed at."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Literal

from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Case, Operator, operators


class All(Shapes):
    """Each operator there is, at its own sizes: all operators' first before any one's second."""

    kind: Literal["all"] = "all"

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        rounds = ([(op, case) for case in op.sizes] for op in operators().values())
        for turn in zip_longest(*rounds):
            yield from (found for found in turn if found is not None)
