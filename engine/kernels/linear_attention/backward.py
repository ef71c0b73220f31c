"""The gradient of gated linear attention, made of two causal products that every form supplies.

`keys_gated` is the operator itself: decay falls on the axis of keys. `values_gated` has the decay
on the axis of what is summed: y_t = Σ_{s < t} (x_t·w_s) · z_s ⊙ decay(s → t). Gradients of queries
are the second forward in time; those of keys and values are the two backward in time, with gates
moved by one token (the operator: Yang et al., arXiv 2312.06635).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import pad

Product: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Form:
    """One way to compute both products, in float32.

    `keys_gated(q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK, state_BHKV)` gives (o_BHTV, state_BHKV);
    `values_gated(x_BHTV, w_BHTV, z_BHTK, log_gate_BHTK, state_BHVK)` gives (y_BHTK, state_BHVK).
    """

    keys_gated: Product
    values_gated: Product


def attend(
    form: Form, q: Tensor, k: Tensor, v: Tensor, log_gate: Tensor, state: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """Outputs and last state by `form`, in float32, with gradients."""
    wide = (x.float() for x in (q, k, v, log_gate, state))
    outputs: tuple[Tensor, Tensor] = _Attend.apply(form, scale, *wide)
    return outputs


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        form: Form,
        scale: float,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        g: Tensor,
        state: Tensor,
    ) -> tuple[Tensor, Tensor]:
        o, last = form.keys_gated(q * scale, k, v, g, state)
        ctx.form, ctx.scale = form, scale
        ctx.save_for_backward(q, k, v, g, state)
        return o, last

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, g, state = ctx.saved_tensors
        do, dlast = grads
        do = do * ctx.scale
        own = (do * v).sum(-1, keepdim=True)  # a token's own score passes no gate
        dq, _ = ctx.form.values_gated(do, v, k, g, state.mT.contiguous())
        # Backward in time the receiver is the earlier token: its own gate is the sender's next.
        later = pad(g, (0, 0, -1, 1)).flip(2)
        back_q, back_k, back_v, back_do = (x.flip(2) for x in (q, k, v, do))
        nothing = torch.zeros_like(dlast).mT.contiguous()
        dk = ctx.form.values_gated(back_v, back_do, back_q, later, nothing)[0].flip(2)
        dv, first = ctx.form.keys_gated(back_k, back_q, back_do, later, dlast)
        to_last = later.cumsum(2).flip(2).exp() * (v @ dlast.mT)
        whole = g.sum(2).exp().unsqueeze(-1)
        dg = _of_gates(q * dq, k * dk, k * to_last, (state * whole * dlast).sum(-1))
        dstate = g[:, :, 0].exp().unsqueeze(-1) * first if g.shape[2] else first
        return None, None, dq + own * k, dk + own * q + to_last, dv.flip(2), dg, dstate


def _of_gates(received: Tensor, sent: Tensor, kept: Tensor, passed: Tensor) -> Tensor:
    """The gradient of log gates: a gate scales all that is sent before it and received from it on.

    What tokens receive and send each other are sums from the end, which leave pairs on either side
    of the gate; what reaches the last state (`kept`, of tokens; `passed`, of the first state) is a
    sum from the start. No term that passes no gate is among them, so none has to cancel.
    """
    between = (received - sent).flip(2).cumsum(2).flip(2)
    return between + pad(kept.cumsum(2), (0, 0, 1, -1)) + passed.unsqueeze(2)
