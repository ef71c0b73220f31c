"""Ring attention: keys and values travel, queries keep a running result (arXiv 2310.01889)."""

from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from engine.core.config import knob
from engine.distributed.program import Program
from engine.training.context_parallel import tiles
from engine.training.context_parallel.algorithm import Kept, SequenceAttention, Tensors, delta
from engine.training.context_parallel.piece import BACKWARD, FORWARD, Piece
from engine.training.context_parallel.rounds import keys_and_sums_travel, keys_travel


class Ring(SequenceAttention):
    """Backward, keys and values go round again with their gradients a turn behind them."""

    kind: Literal["ring"] = knob("ring", doc="keys and values travel; results are merged")
    rescale: bool = knob(True, "weigh partial results by their sums when they are merged")

    def forward(self, piece: Piece, own: Tensors) -> Program[Kept]:
        q, k, v = own

        def act(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            at, value = held
            here, there = piece.spans[piece.rank], piece.spans[of]
            return tiles.forward(q, at, value, here, there, piece.causal, piece.scale)

        def combine(total: Sequence[Tensor], more: Sequence[Tensor]) -> Sequence[Tensor]:
            (o, lse), (other, other_lse) = total, more
            return tiles.merge(o, lse, other, other_lse, self.rescale)

        found = yield from keys_travel(piece, "forward", (k, v), act, combine, FORWARD)
        o, lse = found if found is not None else tiles.forward(q, k, v, [], [], False, 1.0)
        return Kept(o, lse)

    def backward(
        self, piece: Piece, own: Tensors, kept: Kept, do_BGSCD: Tensor
    ) -> Program[Tensors]:
        q, k, v = own
        total = yield from delta(kept.o_BGSCD, do_BGSCD)
        mine: list[Tensor] = []

        def act(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            at, value = held
            here, there = piece.spans[piece.rank], piece.spans[of]
            dq, dk, dv = tiles.backward(
                q, at, value, do_BGSCD, kept.lse_BGSC, total, here, there, piece.causal, piece.scale
            )
            mine[:] = [mine[0] + dq] if mine else [dq]
            return dk, dv

        dk, dv = yield from keys_and_sums_travel(piece, "backward", (k, v), act, BACKWARD)
        return Tensors(mine[0], dk, dv)
