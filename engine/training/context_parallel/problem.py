"""A split attention's tensors, drawn whole and dealt to ranks, and its truth in float64."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from engine.distributed.program import Program
from engine.training.context_parallel.algorithm import Tensors
from engine.training.context_parallel.piece import Piece
from engine.training.context_parallel.split_attention import SplitAttention

NAMES = ("o", "dq", "dk", "dv")


def whole(asked: SplitAttention) -> list[Tensor]:
    """q, k, v and the output's gradient of whole sequences, float32."""
    draw = torch.Generator().manual_seed(asked.seed)
    shapes = [(asked.kv_heads, asked.share), (asked.kv_heads,), (asked.kv_heads,),
              (asked.kv_heads, asked.share)]  # fmt: skip
    # Queries twice as wide as usual: the largest score moves from block to block.
    wide = (2.0, 1.0, 1.0, 1.0)
    return [
        factor * torch.randn(asked.batch, *heads, asked.tokens, asked.dim, generator=draw)
        for heads, factor in zip(shapes, wide, strict=True)
    ]


def dealt(x: Tensor, spans: Sequence[range]) -> Tensor:
    """The tokens of a rank, in the order it holds them."""
    parts = [x[..., run.start : run.stop : run.step, :] for run in spans]
    return torch.cat(parts, -2).contiguous()


def shaped(asked: SplitAttention, dtype: torch.dtype) -> list[Tensor]:
    """A rank's q, k, v and output gradient as meta tensors: shapes without numbers."""
    count = sum(map(len, asked.layout.spans(0, asked.ranks, asked.tokens)))
    heads = (asked.kv_heads, asked.share), (asked.kv_heads,)
    q, k = (
        torch.empty(asked.batch, *each, count, asked.dim, dtype=dtype, device="meta")
        for each in heads
    )
    return [q, k, torch.empty_like(k), torch.empty_like(q)]


def program(
    asked: SplitAttention, piece: Piece, own: Sequence[Tensor]
) -> Program[dict[str, Tensor]]:
    """What a rank does: forward, then backward where it is asked for; its results by name."""
    q, k, v, do = own
    tensors = Tensors(q, k, v)
    kept = yield from asked.attention.forward(piece, tensors)
    found = {"o": kept.o_BGSCD}
    if asked.backward:
        gradients = yield from asked.attention.backward(piece, tensors, kept, do)
        found |= dict(zip(NAMES[1:], gradients, strict=True))
    return found


def truth(asked: SplitAttention) -> dict[str, np.ndarray]:
    """One process's results over whole sequences, by autograd in float64."""
    q, k, v, do = (x.double() for x in whole(asked))
    for x in (q, k, v):
        x.requires_grad_(asked.backward)
    s = (q @ k[:, :, None].mT) * asked.dim**-0.5
    if asked.causal:
        hidden = torch.ones(asked.tokens, asked.tokens, dtype=torch.bool).triu(1)
        s = s.masked_fill(hidden, float("-inf"))
    o = torch.softmax(s, -1) @ v[:, :, None]
    found = {"o": o.detach().numpy()}
    if asked.backward:
        o.backward(do)
        for name, x in zip(NAMES[1:], (q, k, v), strict=True):
            assert x.grad is not None
            found[name] = x.grad.numpy()
    return found


def gathered(
    asked: SplitAttention, arrays: Sequence[dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """Ranks' results as those of whole sequences; NaN where no rank gave any."""
    found: dict[str, np.ndarray] = {}
    for rank, piece in enumerate(arrays):
        for name, part in piece.items():
            shape = (*part.shape[:-2], asked.tokens, part.shape[-1])
            into = found.setdefault(name, np.full(shape, np.nan, part.dtype))
            at = 0
            for run in asked.layout.spans(rank, asked.ranks, asked.tokens):
                into[..., run.start : run.stop : run.step, :] = part[..., at : at + len(run), :]
                at += len(run)
    return found


def deal(asked: SplitAttention, piece: Piece) -> list[Tensor]:
    """A rank's own q, k, v and output gradient."""
    return [dealt(x, piece.spans[piece.rank]) for x in whole(asked)]
