"""Training objectives: SFT, DPO and GRPO as losses of a batch's log-probabilities under a model.

Shape letters: B sequences, T tokens, P tokens of a piece.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.config import Policy, knob
from engine.core.errors import BadInput


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
    """What a batch is judged by."""

    folder = "engine.training.streamed.objectives"
    separable: ClassVar[bool]  # losses of pieces add up to the loss of the whole

    @abstractmethod
    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        """The loss, or a piece's share of it where it is separable."""


class Sft(Objective):
    """Supervised fine-tuning: mean cross-entropy over the answer's tokens."""

    kind: Literal["sft"] = knob("sft", doc="supervised fine-tuning: mean cross-entropy")
    separable: ClassVar[bool] = True

    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        return -(lp_BP * batch.counts_BT[:, piece]).sum() / batch.counts_BT.sum()


class Dpo(Objective):
    """Direct preference optimisation (Rafailov et al., arXiv 2305.18290, equation 7): a pair's loss
    bends the sum over its sequences, so no piece has a loss of its own."""

    kind: Literal["dpo"] = knob("dpo", doc="direct preference optimisation of pairs")
    beta: float = knob(0.1, "how near to stay to the reference", low=1e-3, high=10.0, log=True)
    separable: ClassVar[bool] = False

    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        if len(lp_BP) % 2:
            raise BadInput(f"batch {len(lp_BP)}: DPO takes pairs; make it even")
        ahead_BP = (lp_BP - batch.reference_BT[:, piece]) * batch.counts_BT[:, piece]
        better, worse = ahead_BP.sum(1).unflatten(0, (-1, 2)).unbind(1)
        return -F.logsigmoid(self.beta * (better - worse)).mean()


class Grpo(Objective):
    """Group relative policy optimisation (Shao et al., arXiv 2402.03300, equations 3 and 4):
    clipped surrogate and divergence from the reference, mean in an answer, then over answers."""

    kind: Literal["grpo"] = knob("grpo", doc="group relative policy optimisation of answers")
    clip: float = knob(0.2, "how far a token's ratio counts", low=0.01, high=1.0)
    beta: float = knob(0.04, "weight of the divergence", low=0.0, high=1.0)
    separable: ClassVar[bool] = True

    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        ratio_BP = torch.exp(lp_BP - batch.old_BT[:, piece])
        kept_BP = ratio_BP.clamp(1 - self.clip, 1 + self.clip)
        gain_B1 = batch.advantage_B[:, None]
        worth_BP = torch.minimum(ratio_BP * gain_B1, kept_BP * gain_B1)
        back_BP = batch.reference_BT[:, piece] - lp_BP
        far_BP = torch.exp(back_BP) - back_BP - 1
        share_B1 = batch.counts_BT.sum(1, keepdim=True) * len(lp_BP)
        return -((worth_BP - self.beta * far_BP) * batch.counts_BT[:, piece] / share_B1).sum()
