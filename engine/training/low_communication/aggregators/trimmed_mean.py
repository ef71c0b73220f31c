"""The mean of each coordinate without its largest and smallest values."""

from typing import Literal

from torch import Tensor

from engine.training.low_communication.aggregator import Aggregator, box, ordered


class TrimmedMean(Aggregator):
    """Yin et al., arXiv 1803.01498, definition 2: as many are left out at either end as may be
    forged. What is left of a coordinate lies between honest values, so the result in their box."""

    kind: Literal["trimmed_mean"] = "trimmed_mean"

    def combine(self, x_NP: Tensor, forged: int) -> Tensor:
        count = len(x_NP)
        cut = min(forged, (count - 1) // 2)
        return ordered(x_NP)[cut : count - cut].mean(0)

    def most(self, replicas: int) -> int:
        return (replicas - 1) // 2

    def reach(self, honest_HP: Tensor, forged: int) -> float:
        return box(honest_HP)
