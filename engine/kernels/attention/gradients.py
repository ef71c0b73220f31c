"""Attention as something autograd can differentiate, whichever algorithm computes it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from engine.kernels.attention.arguments import check
from engine.kernels.lanes import LOG2_E


class Tensors(NamedTuple):
    """q_THD, k_SGD, v_SGE and the cumulative starts of sequences, as the reference takes them."""

    q_THD: Tensor
    k_SGD: Tensor
    v_SGE: Tensor
    query_start_B1: Tensor
    key_start_B1: Tensor


class Switches(NamedTuple):
    """What else the reference takes."""

    scale: float
    causal: bool = True
    window: int = 0
    softcap: float = 0.0


class Saved(NamedTuple):
    """What backward needs of forward and of what came back.

    `do_THE` contiguous, in the dtype it came in. Float32 [H, T]: `lse_HT` in log 2, ∞ where a query
    saw nothing; `delta_HT`, the part of each score's gradient that all keys of a query share.
    """

    do_THE: Tensor
    lse_HT: Tensor
    delta_HT: Tensor


@dataclass(frozen=True)
class Algorithm:
    """`forward` gives o_THE and lse_TH, `backward` the gradients of q, k and v."""

    forward: Callable[[Tensors, Switches], tuple[Tensor, Tensor]]
    backward: Callable[[Tensors, Switches, Saved], tuple[Tensor, Tensor, Tensor]]

    def attention(
        self, q_THD: Tensor, k_SGD: Tensor, v_SGE: Tensor, query_start_B1: Tensor,
        key_start_B1: Tensor, *, scale: float, causal: bool = True, window: int = 0,
        softcap: float = 0.0,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """o_THE in q's dtype and lse_TH in float32, as the reference says; both can be
        differentiated. Raises BadInput where shapes do not fit each other."""
        tensors = Tensors(q_THD, k_SGD, v_SGE, query_start_B1, key_start_B1)
        check(tensors._asdict())
        switches = Switches(scale, causal, window, softcap)
        if not (torch.is_grad_enabled() and any(x.requires_grad for x in tensors[:3])):
            return self.forward(tensors, switches)  # nothing to save
        o_THE, lse_TH = _Attention.apply(*tensors, switches, self)
        return o_THE, lse_TH


def saved(o_THE: Tensor, lse_TH: Tensor, do_THE: Tensor, dlse_TH: Tensor) -> Saved:
    """Saved, from forward's results and their gradients."""
    lse_HT = torch.where(lse_TH == -torch.inf, torch.inf, lse_TH * LOG2_E).T.contiguous()
    delta_TH = torch.einsum("the,the->th", do_THE.float(), o_THE.float()) - dlse_TH.float()
    return Saved(do_THE.contiguous(), lse_HT, delta_TH.T.contiguous())


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, Tensor]:
        *tensors, switches, algorithm = given
        o_THE, lse_TH = algorithm.forward(Tensors(*tensors), switches)
        ctx.save_for_backward(*tensors, o_THE, lse_TH)
        ctx.switches, ctx.algorithm = switches, algorithm
        return o_THE, lse_TH

    @staticmethod
    def backward(ctx: Any, *sent: Tensor) -> tuple[Tensor | None, ...]:
        *tensors, o_THE, lse_TH = ctx.saved_tensors
        found = ctx.algorithm.backward(Tensors(*tensors), ctx.switches, saved(o_THE, lse_TH, *sent))
        return (*found, None, None, None, None)
