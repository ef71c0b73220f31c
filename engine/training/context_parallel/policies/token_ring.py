"""TokenRing: keys and values stay, queries travel one way and partial results straight home.

Forward as in arXiv 2412.20501. Backward is its counterpart: queries travel with their output
gradients and sums, gradients of queries go home, those of keys and values never leave.
"""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from engine.core.config import knob
from engine.distributed.program import Program
from engine.training.context_parallel import tiles
from engine.training.context_parallel.algorithm import Kept, SequenceAttention, Tensors, delta
from engine.training.context_parallel.piece import BACKWARD, FORWARD, Piece
from engine.training.context_parallel.rounds import (
    added,
    keys_and_sums_travel,
    queries_travel,
)


class TokenRing(SequenceAttention):
    """Both directions of the links are in use at once."""

    kind: Literal["token_ring"] = knob("token_ring", doc="queries travel, (out, lse) go home")
    rescale: bool = knob(True, "weigh partial results by their sums when they are merged")
    one_way: bool = knob(
        False, "results follow their queries round instead of going home the other way, which is "
        "wrong", group="more",
    )  # fmt: skip

    def forward(self, piece: Piece, own: Tensors) -> Program[Kept]:
        q, k, v = own

        def act(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            seen = piece.pairs(of, piece.rank) > 0
            spans = (piece.spans[of], piece.spans[piece.rank]) if seen else ([], [])
            return tiles.forward(held[0], k, v, *spans, piece.causal, piece.scale)

        def combine(total: Sequence[Tensor], more: Sequence[Tensor]) -> Sequence[Tensor]:
            (o, lse), (other, other_lse) = total, more
            return tiles.merge(o, lse, other, other_lse, self.rescale)

        if self.one_way:
            found = yield from keys_and_sums_travel(piece, "forward", (q,), act, FORWARD, combine)
        else:
            found = yield from queries_travel(piece, "forward", (q,), act, combine, FORWARD)
        o, lse = found
        return Kept(o, lse)

    def backward(
        self, piece: Piece, own: Tensors, kept: Kept, do_BGSCD: Tensor
    ) -> Program[Tensors]:
        q, k, v = own
        total = yield from delta(kept.o_BGSCD, do_BGSCD)
        mine: list[Tensor] = []

        def act(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            spans = piece.spans[of], piece.spans[piece.rank]
            at, do, lse, sums = held
            dq, dk, dv = tiles.backward(at, k, v, do, lse, sums, *spans, piece.causal, piece.scale)
            mine[:] = [mine[0] + dk, mine[1] + dv] if mine else [dk, dv]
            return (dq,)

        travelling = (q, do_BGSCD, kept.lse_BGSC, total)
        (dq,) = yield from queries_travel(piece, "backward", travelling, act, added, BACKWARD)
        return Tensors(dq, mine[0], mine[1])
