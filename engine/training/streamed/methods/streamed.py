"""Backward in pieces of the sequence (Luo et al., StreamBP, arXiv 2506.03077, section 3).

A layer's gradient is a sum over its tokens, so it is taken a piece at a time, last piece first:
what a piece computes again is gone before the next. Pieces meet only in keys and values, whose
gradients gather until the piece that made them has its turn; all later ones have been by then.
Shape letters: B sequences, T tokens, C hidden, G key/value heads, D head size.
"""

from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.training.streamed.method import Method, Phase, untold
from engine.training.streamed.model import Model, Turn, met, part, pieces
from engine.training.streamed.objectives import Batch, Objective


class Streamed(Method):
    """Inputs of layers are kept, as checkpointing does; layers and head go piece by piece."""

    kind: Literal["streamed"] = knob("streamed", doc="layers and head a piece of tokens at a time")
    partitions: int = knob(8, "pieces of the sequence in a layer", low=1, high=4096, log=True)
    head_tokens: int = knob(
        128, "tokens whose logits are there at once", low=1, high=1 << 22, unit="tokens", log=True
    )
    detached: bool = knob(
        False, "forget the gradient of keys and values, which is wrong", group="more"
    )
    fault: Literal["none", "keeps", "twice"] = knob(
        "none", "what a layer's pieces compute stays, or is done twice: both wrong", group="more"
    )

    def gradients(
        self, model: Model, batch: Batch, objective: Objective, phase: Phase = untold
    ) -> float:
        start_BTC = model.embed(batch.ids_BT)
        turn = model.turn(start_BTC)
        ranges = pieces(start_BTC.shape[1], self.partitions)
        ranges = ranges if self.fault == "keeps" else met(ranges, start_BTC)
        with phase("forward"), torch.no_grad():
            kept = [start_BTC.detach()]
            for layer in range(model.config.layers):
                kept.append(_forward(model, layer, kept[-1], turn, ranges))
        with phase("head"):
            loss, slope_BTC = self._head(model, kept.pop(), batch, objective)
        with phase("backward"):
            for layer in reversed(range(model.config.layers)):
                self._backward(model, layer, kept.pop(), slope_BTC, turn, ranges)
            start_BTC.backward(slope_BTC)
        return loss

    def _head(
        self, model: Model, x_BTC: Tensor, batch: Batch, objective: Objective
    ) -> tuple[float, Tensor]:
        """The loss and its gradient by x; logits of `head_tokens` tokens at a time (3.2.1)."""
        length = x_BTC.shape[1]
        ranges = met(pieces(length, -(-length // self.head_tokens)), x_BTC)
        slopes_BT, total = None, torch.zeros((), device=x_BTC.device)
        if not objective.separable:
            total, slopes_BT = _slopes(model, x_BTC, batch, objective, ranges)
        slope_BTC = torch.empty_like(x_BTC)
        for piece in ranges:
            here = slice(piece.start, piece.stop)
            x_BPC = x_BTC[:, here].detach().requires_grad_()
            lp_BP = model.logprobs(x_BPC, batch.target_BT[:, here])
            if slopes_BT is None:
                loss = objective.loss(lp_BP, batch, here)
                loss.backward()
                total = total + loss.detach()
            else:
                lp_BP.backward(slopes_BT[:, here])
            assert x_BPC.grad is not None
            slope_BTC[:, here] = x_BPC.grad
        return (0.0 if total.is_meta else total.item()), slope_BTC

    def _backward(
        self, model: Model, layer: int, x_BTC: Tensor, slope_BTC: Tensor, turn: Turn,
        ranges: list[range],
    ) -> None:  # fmt: skip
        """Turn the gradient by a layer's output, in place, into the one by its input (3.2.2)."""
        with torch.no_grad():
            k_BTGD, v_BTGE = _keys(model, layer, x_BTC, turn, ranges)
        dk_BTGD, dv_BTGE = torch.zeros_like(k_BTGD), torch.zeros_like(v_BTGE)
        keeps, held = self.fault == "keeps", list[Tensor]()
        for piece in reversed(ranges):
            here, seen = slice(piece.start, piece.stop), slice(0, piece.stop)
            x_BPC, at = x_BTC[:, here].detach().requires_grad_(), part(turn, piece)
            k, v = k_BTGD[:, seen].detach(), v_BTGE[:, seen].detach()
            k.requires_grad_(not self.detached), v.requires_grad_(not self.detached)
            if self.fault == "twice":
                thrown_away = model.rest(layer, model.roles(layer), x_BPC, k, v, at)
                torch.autograd.grad(thrown_away, x_BPC, slope_BTC[:, here])
            y_BPC = model.rest(layer, model.roles(layer), x_BPC, k, v, at)
            y_BPC.backward(slope_BTC[:, here], retain_graph=keeps)
            held += [y_BPC] if keeps else []
            del y_BPC
            if k.grad is not None and v.grad is not None:
                dk_BTGD[:, seen] += k.grad
                dv_BTGE[:, seen] += v.grad
                k.grad = v.grad = None
                made = model.keys(model.roles(layer), x_BPC, at)
                torch.autograd.backward(made, (dk_BTGD[:, here], dv_BTGE[:, here]))
                del made
            assert x_BPC.grad is not None
            slope_BTC[:, here] = x_BPC.grad


def _slopes(
    model: Model, x_BTC: Tensor, batch: Batch, objective: Objective, ranges: list[range]
) -> tuple[Tensor, Tensor]:
    """A loss that is no sum over pieces, and its gradient by each token's log-probability."""
    lp_BT = torch.empty_like(batch.reference_BT)
    for piece in ranges:
        here = slice(piece.start, piece.stop)
        with torch.no_grad():
            lp_BT[:, here] = model.logprobs(x_BTC[:, here], batch.target_BT[:, here])
    lp_BT.requires_grad_()
    loss = objective.loss(lp_BT, batch, slice(None))
    (slopes_BT,) = torch.autograd.grad(loss, lp_BT)
    return loss.detach(), slopes_BT


def _keys(
    model: Model, layer: int, x_BTC: Tensor, turn: Turn, ranges: list[range]
) -> tuple[Tensor, Tensor]:
    """k_BTGD and v_BTGE of all tokens, made a piece at a time."""
    w, whole = model.roles(layer), None
    for piece in ranges:
        here = slice(piece.start, piece.stop)
        made = model.keys(w, x_BTC[:, here], part(turn, piece))
        if whole is None:
            sizes = (*x_BTC.shape[:2],)
            whole = tuple(m.new_empty(*sizes, *m.shape[2:]) for m in made)
        for into, m in zip(whole, made, strict=True):
            into[:, here] = m
    assert whole is not None
    return whole[0], whole[1]


def _forward(model: Model, layer: int, x_BTC: Tensor, turn: Turn, ranges: list[range]) -> Tensor:
    """y_BTC of a layer, a piece at a time."""
    k_BTGD, v_BTGE = _keys(model, layer, x_BTC, turn, ranges)
    w, y_BTC = model.roles(layer), torch.empty_like(x_BTC)
    for piece in ranges:
        here, seen = slice(piece.start, piece.stop), slice(0, piece.stop)
        at = part(turn, piece)
        y_BTC[:, here] = model.rest(layer, w, x_BTC[:, here], k_BTGD[:, seen], v_BTGE[:, seen], at)
    return y_BTC
