"""Direct preference optimisation (Rafailov et al., arXiv 2305.18290, equation 7)."""

from typing import ClassVar, Literal

import torch.nn.functional as F
from torch import Tensor

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.training.streamed.objective import Batch, Objective


class Dpo(Objective):
    """A pair's loss bends the sum over its sequences, so no piece has a loss of its own."""

    kind: Literal["dpo"] = knob("dpo", doc="direct preference optimisation of pairs")
    beta: float = knob(0.1, "how near to stay to the reference", low=1e-3, high=10.0, log=True)
    separable: ClassVar[bool] = False

    def loss(self, lp_BP: Tensor, batch: Batch, piece: slice) -> Tensor:
        if len(lp_BP) % 2:
            raise BadInput(f"batch {len(lp_BP)}: DPO takes pairs; make it even")
        ahead_BP = (lp_BP - batch.reference_BT[:, piece]) * batch.counts_BT[:, piece]
        better, worse = ahead_BP.sum(1).unflatten(0, (-1, 2)).unbind(1)
        return -F.logsigmoid(self.beta * (better - worse)).mean()
