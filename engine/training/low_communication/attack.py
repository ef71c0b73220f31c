"""Forged vectors: what attackers who see all honest ones send in their place.

Shape letters: H honest replicas, P parameters.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

Attack = Literal["sign_flip", "noise", "little", "inner_product", "mimic", "not_a_number"]
ATTACKS: tuple[Attack, ...] = get_args(Attack)


def forge(attack: Attack, honest_HP: Tensor, scale: float, seed: int) -> Tensor:
    """The vector [P] that an attacker sends.

    sign_flip: the honest mean, `scale` times, backwards. noise: as large, in any direction.
    little: a few deviations off the mean in each coordinate (arXiv 1902.06156).
    inner_product: a small step backwards (arXiv 1903.03936). mimic: one honest vector once more
    (arXiv 2006.09365). not_a_number: none at all.
    """
    mean_P = honest_HP.mean(0)
    if attack == "sign_flip":
        return -scale * mean_P
    if attack == "noise":
        draw = torch.Generator().manual_seed(seed)
        return scale * mean_P.norm() * torch.randn(len(mean_P), generator=draw)
    if attack == "little":
        return mean_P - 1.5 * honest_HP.std(0, correction=0)
    if attack == "inner_product":
        return -0.1 * mean_P
    if attack == "mimic":
        return honest_HP[0].clone()
    return torch.full_like(mean_P, torch.nan)
