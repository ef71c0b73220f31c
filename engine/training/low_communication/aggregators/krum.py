"""The one vector that lies closest to its neighbours."""

import math
from typing import Literal

import torch
from torch import Tensor

from engine.training.low_communication.aggregator import Aggregator, spread


class Krum(Aggregator):
    """Blanchard et al., arXiv 1703.02757, section 3: least sum of squared distances to the
    N - f - 2 nearest, of N vectors with f forged, 2f + 2 < N.

    An honest vector's sum is at most (N - f - 2) · d², d the largest distance of two honest ones;
    of the chosen one's N - f - 2 neighbours N - 2f - 2 are honest; so one of them is within
    d · √((N - f - 2) / (N - 2f - 2)).
    """

    kind: Literal["krum"] = "krum"

    def combine(self, x_NP: Tensor, forged: int) -> Tensor:
        near = max(1, len(x_NP) - forged - 2)
        squares_NN = torch.cdist(x_NP.double(), x_NP.double()).square()
        squares_NN = squares_NN.nan_to_num(nan=torch.inf, posinf=torch.inf)
        squares_NN.fill_diagonal_(torch.inf)
        score_N = squares_NN.sort(1).values[:, :near].sum(1)
        return x_NP[int(score_N.argmin())].clone()

    def most(self, replicas: int) -> int:
        return max(0, (replicas - 3) // 2)

    def reach(self, honest_HP: Tensor, forged: int) -> float:
        kept = len(honest_HP)
        wide = float(torch.cdist(honest_HP, honest_HP).max())
        found = wide * math.sqrt((kept - 2) / (kept - forged - 2))
        return found + float(spread(honest_HP).max())
