"""The mean, which one forged vector takes anywhere."""

from typing import Literal

import torch
from torch import Tensor

from engine.training.low_communication.aggregator import Aggregator


class Mean(Aggregator):
    """What plain data parallelism does."""

    kind: Literal["mean"] = "mean"

    def combine(self, x_NP: Tensor, forged: int) -> Tensor:
        return x_NP.mean(0)

    def most(self, replicas: int) -> int:
        return 0

    def reach(self, honest_HP: Tensor, forged: int) -> float:
        return torch.inf if forged else 0.0
