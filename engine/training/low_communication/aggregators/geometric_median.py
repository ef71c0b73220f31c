"""The point of least total distance to all vectors."""

from typing import Literal

from torch import Tensor

from engine.core.config import knob
from engine.training.low_communication.aggregator import Aggregator, spread

NEAR = 1e-12  # of a point's distance, below which it is that point


class GeometricMedian(Aggregator):
    """Pillutla et al., arXiv 1912.13445, by Weiszfeld's steps.

    Its total distance is no larger than the honest mean's z, an honest vector is at least
    |m - z| - |x - z| away from it and a forged one at least |x - z| - |m - z|, so that
    (N - 2f) · |m - z| ≤ 2 · Σ |x - z| over the honest.
    """

    kind: Literal["geometric_median"] = "geometric_median"
    rounds: int = knob(200, "Weiszfeld's steps at most", low=1, high=10_000)

    def combine(self, x_NP: Tensor, forged: int) -> Tensor:
        x_MP = x_NP[x_NP.isfinite().all(1)].double()
        found_P = x_MP.median(0).values
        for _ in range(self.rounds):
            weight_M = 1 / (x_MP - found_P).norm(dim=1).clamp(min=NEAR)
            next_P = weight_M @ x_MP / weight_M.sum()
            moved = float((next_P - found_P).norm())
            found_P = next_P
            if moved <= 1e-9 * (1 + float(found_P.norm())):
                break
        return found_P.to(x_NP.dtype)

    def most(self, replicas: int) -> int:
        return (replicas - 1) // 2

    def reach(self, honest_HP: Tensor, forged: int) -> float:
        return 2 * float(spread(honest_HP).sum()) / (len(honest_HP) - forged)
