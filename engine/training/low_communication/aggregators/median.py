"""The median of each coordinate."""

from typing import Literal

from torch import Tensor

from engine.training.low_communication.aggregator import Aggregator, box, ordered


class Median(Aggregator):
    """Yin et al., arXiv 1803.01498, definition 1: with less than half forged it lies, coordinate
    by coordinate, between honest values."""

    kind: Literal["median"] = "median"

    def combine(self, x_NP: Tensor, forged: int) -> Tensor:
        sorted_NP, count = ordered(x_NP), len(x_NP)
        return sorted_NP[(count - 1) // 2 : count // 2 + 1].mean(0)

    def most(self, replicas: int) -> int:
        return (replicas - 1) // 2

    def reach(self, honest_HP: Tensor, forged: int) -> float:
        return box(honest_HP)
