"""Local linear attention for one tile of queries, forward and backward, matrix-free.

A tile holds the weights of its queries on the keys they see; multiplying a query's covariance of
keys with a vector is then two products with those keys (Zuo et al., arXiv 2510.01450).
Shapes: Q queries of the tile, S keys they see, D key, E value width; leading axes for heads.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.kernels.local_linear_attention.conjugate import ITERATIONS, TOLERANCE, solve


@dataclass(frozen=True)
class Solver:
    """How the systems are solved: at most `iterations` steps, to `tolerance` of the right side."""

    iterations: int = ITERATIONS
    tolerance: float = TOLERANCE
    note: Callable[[Tensor], None] | None = None


@dataclass(frozen=True)
class Tile:
    """Queries from token `first` on, the keys they see, and what the weights say of them."""

    q_QD: Tensor
    k_SD: Tensor
    p_QS: Tensor  # softmax weights
    m_QD: Tensor  # mean key
    scale: float
    ridge: float
    solver: Solver

    def slopes(self, x_QD: Tensor) -> Tensor:
        """(k_j - m)·x of each query and key."""
        return x_QD @ self.k_SD.mT - (x_QD * self.m_QD).sum(-1, keepdim=True)

    def multiply(self, x_QD: Tensor) -> Tensor:
        """(C + ridge·I) x with C = Σ_j p_j (k_j - m)(k_j - m)ᵀ."""
        weighed = self.p_QS * self.slopes(x_QD)
        rest = weighed.sum(-1, keepdim=True) * self.m_QD
        return weighed @ self.k_SD - rest + self.ridge * x_QD

    def solve(self, right_QD: Tensor) -> Tensor:
        """(C + ridge·I)⁻¹ right."""
        solver = self.solver
        return solve(self.multiply, right_QD, solver.iterations, solver.tolerance, solver.note)

    def quietly(self) -> "Tile":
        """The same, noting nothing."""
        return replace(self, solver=replace(self.solver, note=None))


def tile(
    q_QD: Tensor, k_SD: Tensor, first: int, scale: float, ridge: float, solver: Solver
) -> Tile:
    """The tile of queries `first`, `first` + 1, … on keys 0 … S - 1."""
    rows = torch.arange(first, first + q_QD.shape[-2], device=q_QD.device)
    future = torch.arange(k_SD.shape[-2], device=q_QD.device) > rows.unsqueeze(-1)
    p_QS = (scale * q_QD @ k_SD.mT).masked_fill_(future, -torch.inf).softmax(-1)
    return Tile(q_QD, k_SD, p_QS, p_QS @ k_SD, scale, ridge, solver)


def forward(given: Tile, v_SE: Tensor) -> tuple[Tensor, Tensor]:
    """Outputs and the solutions z = (C + ridge·I)⁻¹ (q - m)."""
    z_QD = given.solve(given.q_QD - given.m_QD)
    return (given.p_QS * (1.0 + given.slopes(z_QD))) @ v_SE, z_QD


def backward(
    given: Tile, v_SE: Tensor, z_QD: Tensor, do_QE: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of the tile's queries, and what it adds to those of the keys and values it sees.

    By implicit differentiation: the derivative of z through its system is one more solve, with
    u = (C + ridge·I)⁻¹ Σ_j p_j c_j (k_j - m) and c_j = do·v_j.
    """
    p, k, q = given.p_QS, given.k_SD, given.q_QD
    c_QS = do_QE @ v_SE.mT
    c_QS = c_QS - (p * c_QS).sum(-1, keepdim=True)  # its mean takes no part in any gradient
    weighed = p * c_QS
    u_QD = given.quietly().solve(weighed @ k - weighed.sum(-1, keepdim=True) * given.m_QD)
    by_z, by_u = given.slopes(z_QD), given.slopes(u_QD)
    dv_SE = (p * (1.0 + by_z)).mT @ do_QE
    e_QS = c_QS * (1.0 + by_z) - by_u - by_u * by_z
    ds_QS = given.scale * p * (e_QS - (p * e_QS).sum(-1, keepdim=True))
    dq_QD = ds_QS @ k + u_QD
    dk_SD = ds_QS.mT @ q
    dk_SD += (p * (c_QS - by_u)).mT @ z_QD - (p * (1.0 + by_z)).mT @ u_QD
    return dq_QD, dk_SD, dv_SE
