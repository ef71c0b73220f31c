"""In-context regression with a target that changes over time, and the estimators compared on it.

A task is a sequence of keys and noisy values. Its regimes follow each other in time; each has its
own region of keys and its own linear map, so that the whole is linear nowhere but in parts. Each
estimator sees pairs up to t and predicts the value of key t + 1 (the test-time regression of Zuo et
al., arXiv 2510.01450). N tasks, T pairs, D width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor

Setting = TypeVar("Setting")
Estimate: TypeAlias = Callable[[Tensor, Tensor, Tensor], Tensor]  # (q_NTD, k_NTD, v_NTD) -> o_NTD


@dataclass(frozen=True)
class Tasks:
    """Keys seen so far, their values, the keys asked for and what they would give without noise."""

    k_NTD: Tensor
    v_NTD: Tensor
    q_NTD: Tensor
    truth_NTD: Tensor

    def errors(self, o_NTD: Tensor) -> Tensor:
        """Mean squared error by task and position."""
        return (o_NTD - self.truth_NTD).square().mean(-1)


def tasks(
    count: int, length: int, width: int, regimes: int, spread: float, noise: float, seed: int
) -> Tasks:
    """`count` tasks; keys and queries have length 1, so that e^(scale·q·k) falls with distance."""
    draw = torch.Generator().manual_seed(seed)
    pairs = length + 1
    centres = torch.randn(count, regimes, width, generator=draw)
    centres = centres / centres.norm(dim=-1, keepdim=True)
    maps = torch.randn(count, regimes, width, width, generator=draw)
    regime = (torch.arange(pairs) * regimes // pairs).clamp_max(regimes - 1)
    moved = torch.randn(count, pairs, width, generator=draw) * spread / width**0.5
    keys = centres[:, regime] + moved
    keys = keys / keys.norm(dim=-1, keepdim=True)
    clean = torch.einsum("ntde,ntd->nte", maps[:, regime], keys)
    seen = clean + noise * torch.randn(count, pairs, width, generator=draw)
    return Tasks(keys[:, :-1], seen[:, :-1], keys[:, 1:], clean[:, 1:])


def least_squares(ridge: float) -> Estimate:
    """Linear attention at its best: the global ridge regression of all pairs so far, with a bias.

    Every linear-attention state is some linear map of keys; this one fits best (MesaNet's solve).
    """

    def estimate(q_NTD: Tensor, k_NTD: Tensor, v_NTD: Tensor) -> Tensor:
        one = torch.ones(*k_NTD.shape[:-1], 1)
        k, q = (torch.cat([x, one], -1) for x in (k_NTD, q_NTD))
        h = (k.unsqueeze(-1) * k.unsqueeze(-2)).cumsum(1) + ridge * torch.eye(k.shape[-1])
        s = (k.unsqueeze(-1) * v_NTD.unsqueeze(-2)).cumsum(1)
        weights = torch.linalg.solve(h, q.unsqueeze(-1))
        return (weights.mT @ s).squeeze(-2)

    return estimate


def fading(ridge: float, kept: float) -> Estimate:
    """Linear attention that can forget: least squares with each pair's weight `kept` a step.

    What a gated linear state with a solve at the query comes to (MesaNet's with decay).
    """

    def estimate(q_NTD: Tensor, k_NTD: Tensor, v_NTD: Tensor) -> Tensor:
        one = torch.ones(*k_NTD.shape[:-1], 1)
        k, q = (torch.cat([x, one], -1) for x in (k_NTD, q_NTD))
        penalty, found = ridge * torch.eye(k.shape[-1]), []
        h = torch.zeros(len(k), k.shape[-1], k.shape[-1])
        s = torch.zeros(len(k), k.shape[-1], v_NTD.shape[-1])
        for t in range(k.shape[1]):
            h = kept * h + k[:, t, :, None] * k[:, t, None]
            s = kept * s + k[:, t, :, None] * v_NTD[:, t, None]
            weights = torch.linalg.solve(h + penalty, q[:, t, :, None])
            found.append((weights.mT @ s).squeeze(-2))
        return torch.stack(found, 1)

    return estimate


def softmax(scale: float) -> Estimate:
    """Softmax attention: the kernel-weighted mean of values (Nadaraya and Watson)."""

    def estimate(q_NTD: Tensor, k_NTD: Tensor, v_NTD: Tensor) -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            q_NTD, k_NTD, v_NTD, is_causal=True, scale=scale
        )

    return estimate


def best(choices: dict[Setting, Estimate], held_out: Tasks) -> tuple[Setting, Estimate]:
    """The setting with the least error on tasks that are not the ones compared on."""
    given = (held_out.q_NTD, held_out.k_NTD, held_out.v_NTD)
    found = {x: float(held_out.errors(make(*given)).mean()) for x, make in choices.items()}
    chosen = min(found, key=lambda x: found[x])
    return chosen, choices[chosen]
