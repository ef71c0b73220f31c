"""Robust aggregation: one vector from those of all replicas, of which some are forged.

Shape letters: N replicas, H of them honest, P parameters.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from engine.core.config import Policy


class Aggregator(Policy):
    """Concrete ones lie one to a file in `aggregators`; what each promises is its `reach`."""

    folder = "engine.training.low_communication.aggregators"

    @abstractmethod
    def combine(self, x_NP: Tensor, forged: int) -> Tensor:
        """One vector [P] from all, `forged` of which may be anything, numbers or not."""

    @abstractmethod
    def most(self, replicas: int) -> int:
        """How many may be forged before its promise is void."""

    @abstractmethod
    def reach(self, honest_HP: Tensor, forged: int) -> float:
        """How far from the honest vectors' mean the result lies at most, whatever is forged."""


def spread(honest_HP: Tensor) -> Tensor:
    """Distance [H] of each from their mean."""
    return (honest_HP - honest_HP.mean(0)).norm(dim=1)


def box(honest_HP: Tensor) -> float:
    """Diagonal of the smallest box that holds them all, and so their mean."""
    return float((honest_HP.amax(0) - honest_HP.amin(0)).norm())


def ordered(x_NP: Tensor) -> Tensor:
    """Each coordinate in ascending order; what is no number is the largest."""
    return x_NP.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf).sort(0).values
