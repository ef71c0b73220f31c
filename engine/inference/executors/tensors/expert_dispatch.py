"""Expert-parallel dispatch on real ranks: each has some of a layer's experts, tokens are sent to
those that they are routed to, and what the experts say is sent back and added up at home.

Messages have room for all tokens that a rank may send, so that nobody asks first how many come.
Shape letters: T tokens, C hidden, K experts of a token, N rows that are routed: T times K, R ranks,
E experts of one rank.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.models.feedforward import Mixture
from engine.models.layers import route
from engine.models.model import Model

CODES = 127.0  # largest of 8 bits


class Channel(Protocol):
    """The way to another rank and back."""

    def send(self, tensors: Sequence[Tensor], task: str) -> None: ...
    def receive(
        self, shapes: Sequence[tuple[tuple[int, ...], torch.dtype]], task: str
    ) -> list[Tensor]: ...


class Dispatched:
    """A layer's experts, dealt evenly to ranks in their order: equal to `inner` on one rank, bit
    for bit, where `int8` is false.

    `channels`: to each other rank, None at this one's own place; `room`: most tokens that any rank
    has in a pass; `int8`: tokens travel in 8 bits with a scale of each, those that stay, too.
    """

    def __init__(
        self, inner: Mixture, channels: Sequence[Channel | None], room: int, int8: bool,
        swapped: bool = False,
    ) -> None:  # fmt: skip
        """`swapped`, a fault: what two rows of another rank's experts come to changes places."""
        self.inner, self.channels, self.int8, self.swapped = inner, channels, int8, swapped
        self.rank, self.ranks = channels.index(None), len(channels)
        self.room = room * inner.moe.per_token
        self.each = inner.moe.count // self.ranks

    def __call__(self, x_TC: Tensor) -> Tensor:
        """y_TC for normalised x_TC; every rank must be asked."""
        inner = self.inner
        index_TK, weight_TK = route(inner.moe, inner.router(x_TC), inner.correction)
        y_TC = inner.shared(x_TC) if inner.shared else torch.zeros_like(x_TC)
        order_N = index_TK.flatten().argsort(stable=True)
        token_N = order_N // inner.moe.per_token
        weight_N = weight_TK.flatten()[order_N].to(x_TC.dtype)
        counts = index_TK.flatten().bincount(minlength=inner.moe.count).view(self.ranks, self.each)
        said_NC = self._routed(x_TC[token_N], counts.to(torch.int32))
        stop = 0
        for count in counts.flatten().tolist():  # in the order in which one rank adds them up
            rows = slice(stop, stop + count)
            y_TC.index_add_(0, token_N[rows], said_NC[rows] * weight_N[rows, None])
            stop += count
        return y_TC

    def _routed(self, x_NC: Tensor, counts_RE: Tensor) -> Tensor:
        """What the experts of all ranks say of rows, which come in the experts' order."""
        sizes, hidden = counts_RE.sum(1).tolist(), x_NC.shape[1]
        parts = x_NC.split(sizes)
        for channel, rows, counts_E in zip(self.channels, parts, counts_RE, strict=True):
            if channel is not None:
                channel.send(
                    [counts_E, *(self._roomy(one) for one in self._coded(rows))], "dispatch"
                )
        here = self._experts(self._decoded(self._coded(parts[self.rank])), counts_RE[self.rank])
        for channel in self.channels:
            if channel is not None:
                counts_E, *coded = channel.receive(self._shapes(hidden), "dispatch")
                count = int(counts_E.sum())
                said = self._experts(self._decoded([one[:count] for one in coded]), counts_E)
                channel.send([self._roomy(said)], "combine")
        told = []
        for channel, size in zip(self.channels, sizes, strict=True):
            if channel is None:
                told.append(here)
                continue
            rows = channel.receive([((self.room, hidden), torch.float32)], "combine")[0][:size]
            told.append(rows.flip(0) if self.swapped else rows)
        return torch.cat(told)

    def _experts(self, x_NC: Tensor, counts_E: Tensor) -> Tensor:
        """What this rank's experts say of rows in their order."""
        inner, first, found = self.inner, self.rank * self.each, []
        for expert, rows in enumerate(x_NC.split(counts_E.tolist()), first):
            if len(rows):
                wide = inner.into[expert](rows)
                wide = inner.act(wide) if inner.act else inner.glu(*wide.chunk(2, dim=-1))
                found.append(inner.down[expert](wide))
        return torch.cat(found) if found else x_NC

    def _coded(self, x_NC: Tensor) -> list[Tensor]:
        """Rows as they are sent."""
        if not self.int8:
            return [x_NC.float()]
        scale_N1 = x_NC.abs().amax(1, keepdim=True).clamp_min(1e-12) / CODES
        return [(x_NC / scale_N1).round().to(torch.int8), scale_N1.float()]

    def _decoded(self, coded: list[Tensor]) -> Tensor:
        return coded[0] if len(coded) == 1 else coded[0].float() * coded[1]

    def _shapes(self, hidden: int) -> list[tuple[tuple[int, ...], torch.dtype]]:
        counts: tuple[tuple[int, ...], torch.dtype] = ((self.each,), torch.int32)
        if not self.int8:
            return [counts, ((self.room, hidden), torch.float32)]
        return [counts, ((self.room, hidden), torch.int8), ((self.room, 1), torch.float32)]

    def _roomy(self, rows: Tensor) -> Tensor:
        """`rows` at the beginning of a message's room."""
        room = rows.new_zeros((self.room, *rows.shape[1:]))
        room[: len(rows)] = rows
        return room


def dispatch(
    model: Model, channels: Sequence[Channel | None], room: int, int8: bool, swapped: bool = False
) -> None:
    """Spread the experts of `model` over ranks from now on, each of which has done so."""
    for block in model.blocks:
        mixture = getattr(block, "mlp", None)
        if isinstance(mixture, Mixture):
            block.mlp = Dispatched(mixture, channels, room, int8, swapped)  # type: ignore[union-attr]
