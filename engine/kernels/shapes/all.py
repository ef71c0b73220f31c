"""Every operator at the sizes it is timed at."""

from collections.abc import Iterator
from typing import Literal

from engine.kernels.operator import Case, Operator, operators
from engine.kernels.sweep import Shapes


class All(Shapes):
    """Each operator there is, at its own sizes."""

    kind: Literal["all"] = "all"

    def cases(self) -> Iterator[tuple[Operator, Case]]:
        for operator in operators().values():
            for case in operator.sizes:
                yield operator, case
