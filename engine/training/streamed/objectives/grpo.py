"""Group relative policy optimisation (Shao et al., arXiv 2402.03300, equations 3 and 4)."""

from typing import ClassVar, Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.training.streamed.objective import Batch, Objective


class Grpo(Objective):
    """Clipped surrogate and divergence from the reference, mean in an answer, then over answers."""

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
