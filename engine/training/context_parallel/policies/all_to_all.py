"""Ulysses: an all-to-all turns a share of the tokens into a share of the heads (arXiv 2309.14509).

Each rank then attends over the whole sequence with its heads, and another all-to-all turns results
back. Key/value heads must divide by the ranks.
"""

from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.distributed.program import Compute, Program, Receive, Send, Wait, shapes_of
from engine.training.context_parallel import tiles
from engine.training.context_parallel.algorithm import Kept, SequenceAttention, Tensors
from engine.training.context_parallel.piece import BACKWARD, FORWARD, Piece
from engine.training.context_parallel.rounds import size


class AllToAll(SequenceAttention):
    """Nothing travels during attention itself: all communication is exposed."""

    kind: Literal["all_to_all"] = knob("all_to_all", doc="Ulysses: tokens for heads and back")

    def fits(self, ranks: int, kv_heads: int) -> None:
        if kv_heads % ranks:
            raise BadInput(
                f"kv_heads {kv_heads}: all_to_all deals heads to ranks, and {ranks} ranks do not "
                "divide them; change either, or take a ring"
            )

    def forward(self, piece: Piece, own: Tensors) -> Program[Kept]:
        q, k, v = whole = yield from exchange(piece, list(own), "heads", "tokens")
        if piece.dropped >= 0:
            lost = (piece.rank - piece.dropped) % piece.ranks
            for x in (k, v):
                x[:, :, whole_places(piece)[lost]] = 0
        order = [run for spans in piece.spans for run in spans]

        def act() -> tuple[Tensor, Tensor]:
            return tiles.forward(q, k, v, order, order, piece.causal, piece.scale)

        o, lse = yield Compute("forward", act, flops(piece, FORWARD), "heads", size(whole))
        (back,) = yield from exchange(piece, [o], "tokens", "out")
        return Kept(back, lse, (q, k, v, o))

    def backward(
        self, piece: Piece, own: Tensors, kept: Kept, do_BGSCD: Tensor
    ) -> Program[Tensors]:
        q, k, v, o = kept.more
        (do,) = yield from exchange(piece, [do_BGSCD], "heads", "dout")
        order = [run for spans in piece.spans for run in spans]
        wide = torch.promote_types(o.dtype, torch.float32)

        def act() -> tuple[Tensor, Tensor, Tensor]:
            total = (o.to(wide) * do.to(wide)).sum(-1)
            return tiles.backward(
                q, k, v, do, kept.lse_BGSC, total, order, order, piece.causal, piece.scale
            )

        made = yield Compute(
            "backward", act, flops(piece, BACKWARD), "heads", size((q, k, v, o, do))
        )
        return Tensors(*(yield from exchange(piece, list(made), "tokens", "gradients")))


def flops(piece: Piece, each: int) -> float:
    """Of a share of the heads over the whole sequence."""
    everyone = range(piece.ranks)
    return sum(piece.flops(a, b, each) for a in everyone for b in everyone) / piece.ranks


def whole_places(piece: Piece) -> list[slice]:
    """Where each rank's tokens stand when all are put one after another."""
    found, at = [], 0
    for rank in range(piece.ranks):
        found.append(slice(at, at + piece.tokens(rank)))
        at += piece.tokens(rank)
    return found


def exchange(piece: Piece, tensors: list[Tensor], split: str, task: str) -> Program[list[Tensor]]:
    """All-to-all. `split` "heads": deal heads, gather tokens; "tokens": the other way."""
    places = whole_places(piece)

    def part(x: Tensor, rank: int) -> Tensor:
        return x.chunk(piece.ranks, 1)[rank] if split == "heads" else x[..., places[rank], :]

    tickets: dict[int, object] = {}
    for turn in range(1, piece.ranks):
        target, source = (piece.rank + turn) % piece.ranks, (piece.rank - turn) % piece.ranks
        yield Send(target, [part(x, target) for x in tensors], f"{task}_{target}")
        # All ranks hold equally many tokens and heads: what comes is shaped as what went.
        shapes = shapes_of([part(x, target) for x in tensors])
        tickets[source] = yield Receive(source, shapes, f"{task}_{piece.rank}")
    found = {piece.rank: [part(x, piece.rank) for x in tensors]}
    for source, ticket in tickets.items():
        found[source] = yield Wait(ticket)
    along = -2 if split == "heads" else 1
    rows = range(piece.ranks)
    return [torch.cat([found[r][n] for r in rows], along) for n in range(len(tensors))]
