"""Supervised fine-tuning: the mean cross-entropy of the tokens that count."""

from typing import ClassVar, Literal

from torch import Tensor

from engine.core.config import knob
from engine.training.streamed.objective import Batch, Objective


class Sft(Objective):
    """Mean over the answer's tokens."""

    kind: Literal["sft"] = knob("sft", doc="supervised fine-tuning: mean cross-entropy")
    separable: ClassVar[bool] = True

    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        return -(lp_BP * batch.counts_BT[:, piece]).sum() / batch.counts_BT.sum()
