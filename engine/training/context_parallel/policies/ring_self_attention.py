"""Ring self-attention: keys go round for all scores, then values for the output.

Sequence Parallelism (arXiv 2105.13120), section 3.2. The rows of scores are whole before their
softmax, so nothing is rescaled, and are kept for backward: C · L numbers a head. Gradients of keys
and values are summed on their way round the ring, where the paper's code sums them by all-reduce.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from engine.core.config import knob
from engine.distributed.program import Compute, Program
from engine.training.context_parallel import tiles
from engine.training.context_parallel.algorithm import Kept, SequenceAttention, Tensors
from engine.training.context_parallel.piece import Piece
from engine.training.context_parallel.policies.all_to_all import whole_places
from engine.training.context_parallel.rounds import added, keys_and_sums_travel, keys_travel, size


class RingSelfAttention(SequenceAttention):
    """Four rounds: scores, output; then gradients of values and scores, of keys and queries."""

    kind: Literal["ring_self_attention"] = knob(
        "ring_self_attention", doc="keys travel for scores, then values for the output"
    )
    fault: Literal["none", "keeps", "twice"] = knob(
        "none", "keeps: every block that came is held on to; twice: values go round once more",
        group="more",
    )  # fmt: skip

    def forward(self, piece: Piece, own: Tensors) -> Program[Kept]:
        q, k, v = own
        places = whole_places(piece)
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = q.new_full((*q.shape[:-1], places[-1].stop), float("-inf"), dtype=wide)
        held_on: list[Tensor] = []

        def keep(held: Sequence[Tensor]) -> None:
            if self.fault == "keeps":
                held_on.extend(held)

        def score(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            keep(held)
            here = scores[..., places[of]]
            for tile in tiles.tiles(
                piece.spans[piece.rank], piece.spans[of], piece.causal, q.device
            ):
                part = tiles.scores(
                    q[..., tile.rows, :], tiles.chosen(held[0], tile.keys), piece.scale, tile.hidden
                )
                at = 0
                for place in tile.keys:
                    count = place.stop - place.start
                    here[..., tile.rows, place] = part[..., at : at + count]
                    at += count
            return ()

        yield from keys_travel(piece, "scores", (k,), score, lambda a, b: (), 2)

        def normalise() -> tuple[Tensor, Tensor]:
            lse = torch.logsumexp(scores, -1)
            return scores.sub_(lse[..., None]).exp_().to(q.dtype), lse

        p, lse = yield Compute("softmax", normalise, bytes=3 * size([scores]))

        def weigh(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            keep(held)
            return (p[..., places[of]] @ held[0][:, :, None],)

        found = yield from keys_travel(piece, "output", (v,), weigh, added, 2)
        if self.fault == "twice":
            yield from keys_travel(piece, "again", (v,), lambda of, held: (), added, 0)
        o = found[0] if found is not None else torch.zeros_like(q)
        return Kept(o, lse, (p, *held_on))

    def backward(
        self, piece: Piece, own: Tensors, kept: Kept, do_BGSCD: Tensor
    ) -> Program[Tensors]:
        q, k, v = own
        p = kept.more[0]
        places = whole_places(piece)
        dp = torch.empty_like(p)
        mine: list[Tensor] = []

        def values(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            dp[..., places[of]] = do_BGSCD @ held[0][:, :, None].mT
            return ((p[..., places[of]].mT @ do_BGSCD).sum(2),)

        (dv,) = yield from keys_and_sums_travel(piece, "backward_values", (v,), values, 4)

        def through_softmax() -> Tensor:
            dp.sub_((dp * p).sum(-1, keepdim=True)).mul_(p).mul_(piece.scale)
            return dp

        ds = yield Compute("softmax_backward", through_softmax, bytes=4 * size([dp]))

        def keys(of: int, held: Sequence[Tensor]) -> Sequence[Tensor]:
            here = ds[..., places[of]]
            dq = here @ held[0][:, :, None]
            mine[:] = [mine[0] + dq] if mine else [dq]
            return ((here.mT @ q).sum(2),)

        (dk,) = yield from keys_and_sums_travel(piece, "backward_keys", (k,), keys, 4)
        return Tensors(mine[0], dk, dv)
