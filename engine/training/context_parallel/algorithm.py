"""Context-parallel attention algorithm: forward and backward as programs that every rank runs.

Shape letters: B sequences, G key/value heads, S query heads for each, C tokens of a rank, D head
size. Queries stand as BGSCD, keys and values as BGCD.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from engine.core.config import Policy
from engine.distributed.program import Compute, Program
from engine.training.context_parallel.piece import Piece


class Tensors(NamedTuple):
    """A rank's own queries, keys and values."""

    q_BGSCD: Tensor
    k_BGCD: Tensor
    v_BGCD: Tensor


@dataclass
class Kept:
    """What forward leaves for backward: its output and sums, or what a policy keeps instead."""

    o_BGSCD: Tensor
    lse_BGSC: Tensor
    more: tuple[Tensor, ...] = ()


class SequenceAttention(Policy):
    """Concrete ones lie one to a file in `policies`."""

    folder = "engine.training.context_parallel.policies"

    @abstractmethod
    def forward(self, piece: Piece, own: Tensors) -> Program[Kept]:
        """Attention of the rank's own queries to all keys."""

    @abstractmethod
    def backward(
        self, piece: Piece, own: Tensors, kept: Kept, do_BGSCD: Tensor
    ) -> Program[Tensors]:
        """Gradients of the rank's own queries, keys and values."""

    def fits(self, ranks: int, kv_heads: int) -> None:
        """Raises BadInput where it cannot be done with so many ranks."""
        _ = ranks, kv_heads


def delta(o: Tensor, do: Tensor) -> Program[Tensor]:
    """delta_BGSC, the sum of do · o, in float32 or wider."""
    wide = torch.promote_types(o.dtype, torch.float32)
    found: Tensor = yield Compute(
        "delta", lambda: (o.to(wide) * do.to(wide)).sum(-1), bytes=float(o.nbytes + do.nbytes)
    )
    return found
