"""What is trained for: a loss of the log-probabilities that a model gives to a batch's tokens.

Shape letters: B sequences, T tokens, P tokens of a piece.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from engine.core.config import Policy


@dataclass(frozen=True)
class Batch:
    """Tokens in, tokens to be said, which of them count, and what other models said of them.

    Pairs of DPO are neighbours, the better one first; the sequences of GRPO are one group.
    """

    ids_BT: Tensor
    target_BT: Tensor
    counts_BT: Tensor  # 1.0 or 0.0
    advantage_B: Tensor  # of each answer within its group
    old_BT: Tensor  # log-probabilities of the model that drew the answers
    reference_BT: Tensor  # log-probabilities of the model to stay near


class Objective(Policy):
    """Concrete ones lie one to a file in `objectives`."""

    folder = "engine.training.streamed.objectives"
    separable: ClassVar[bool]  # losses of pieces add up to the loss of the whole

    @abstractmethod
    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        """The loss, or a piece's share of it where it is separable."""
