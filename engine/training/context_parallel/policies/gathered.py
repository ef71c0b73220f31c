"""All keys and values on every rank: they are gathered whole before any attention begins.

What splitting a sequence is to avoid: memory of keys and values does not fall with more ranks.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.distributed.program import Compute, Program
from engine.training.context_parallel import tiles
from engine.training.context_parallel.algorithm import Kept, SequenceAttention, Tensors, delta
from engine.training.context_parallel.piece import BACKWARD, FORWARD, Piece
from engine.training.context_parallel.policies.all_to_all import whole_places
from engine.training.context_parallel.rounds import keys_and_sums_travel, keys_travel, size


class Gathered(SequenceAttention):
    """Backward, every rank has gradients of all keys; they are summed round the ring."""

    kind: Literal["gathered"] = knob("gathered", doc="all keys and values on every rank")

    def forward(self, piece: Piece, own: Tensors) -> Program[Kept]:
        q, k, v = own
        found: dict[int, Sequence[Tensor]] = {}

        def keep(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            found[of] = held
            return ()

        yield from keys_travel(piece, "gather", (k, v), keep, lambda a, b: (), 0)
        known = sorted(found)
        keys, values = (torch.cat([found[r][n] for r in known], 2) for n in (0, 1))
        here, all_spans = piece.spans[piece.rank], [s for r in known for s in piece.spans[r]]

        def act() -> tuple[Tensor, Tensor]:
            return tiles.forward(q, keys, values, here, all_spans, piece.causal, piece.scale)

        o, lse = yield Compute("forward", act, flops(piece, FORWARD), "all_keys", size((q, keys)))
        return Kept(o, lse, (keys, values))

    def backward(
        self, piece: Piece, own: Tensors, kept: Kept, do_BGSCD: Tensor
    ) -> Program[Tensors]:
        q, keys, values = own.q_BGSCD, *kept.more
        total = yield from delta(kept.o_BGSCD, do_BGSCD)
        known = [r for r in range(piece.ranks) if piece.pairs(piece.rank, r)]
        here, all_spans = piece.spans[piece.rank], [s for r in known for s in piece.spans[r]]

        def act() -> tuple[Tensor, Tensor, Tensor]:
            return tiles.backward(
                q, keys, values, do_BGSCD, kept.lse_BGSC, total, here, all_spans,
                piece.causal, piece.scale,
            )  # fmt: skip

        dq, dk, dv = yield Compute(
            "backward", act, flops(piece, BACKWARD), "all_keys", size((q, keys))
        )
        places = dict(zip(known, whole_places(piece)[: len(known)], strict=True))
        empty = torch.zeros_like(own.k_BGCD)

        def share(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            if of not in places:
                return empty, empty
            return dk[:, :, places[of]], dv[:, :, places[of]]

        token = (torch.zeros(1, device=q.device),)  # only the sums have to go round
        own_dk, own_dv = yield from keys_and_sums_travel(piece, "sum", token, share, 0)
        return Tensors(dq, own_dk, own_dv)


def flops(piece: Piece, each: int) -> float:
    """Of one rank's queries and all keys."""
    return sum(piece.flops(piece.rank, other, each) for other in range(piece.ranks))
