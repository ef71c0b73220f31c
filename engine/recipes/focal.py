"""Focal loss: a prediction counts the less, the surer it is already of the right answer.

Lin et al., arXiv 1708.02002, equation 4. Shape letters: L predictions, V vocabulary.
"""

from torch import Tensor, nn


def focal(logits_LV: Tensor, target_L: Tensor, gamma: float) -> Tensor:
    """-(1 - p)^gamma log p of each target's probability p, in nats; gamma 0 is cross-entropy."""
    nats_L = nn.functional.cross_entropy(logits_LV, target_L, reduction="none")
    if gamma == 0:
        return nats_L
    # 1 - exp(-nats), exact where p is near 1.
    return (-(-nats_L).expm1()) ** gamma * nats_L
