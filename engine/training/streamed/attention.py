"""Causal attention of the last tokens of a sequence, tile by tile, with its gradients.

Every way to get gradients calls this one, so that none is charged for scores of all pairs; memory
beside inputs and outputs is a tile's, forward and backward. After Dao, FlashAttention-2, arXiv
2307.08691. Shape letters: B sequences, C queries, M keys (the queries are the last C of them),
G key/value heads, S query heads for each, H = G S, D head size, E value size, R = S times a tile's
queries.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


@dataclass(frozen=True)
class Scores:
    """How scores are made: scale, window (0: none), cap (0: none), and tokens of a tile's side."""

    scale: float
    window: int = 0
    cap: float = 0.0
    tile: int = 256


def attend(q_BCHD: Tensor, k_BMGD: Tensor, v_BMGE: Tensor, scores: Scores) -> Tensor:
    """o_BCHE of queries that are the last C of M tokens, each seeing itself and earlier ones."""
    found: Tensor = _Tiled.apply(q_BCHD, k_BMGD, v_BMGE, scores)
    return found


@dataclass(frozen=True)
class _Tile:
    rows: slice
    keys: slice
    hidden_CM: Tensor | None  # None where every query sees every key
    last: bool  # of these rows


def _tiles(count: int, length: int, scores: Scores, like: Tensor) -> Iterator[_Tile]:
    """The pairs of queries and keys that meet. On shapes alone one tile, the last, stands for all:
    each takes as much memory."""
    first, side = length - count, scores.tile
    begins = range(0, count, side)
    for a in begins[-1:] if like.is_meta else begins:
        b = min(a + side, count)
        low = max(0, first + a - scores.window + 1) if scores.window else 0
        high = first + b
        starts = range(low, high, side)
        for c in starts[-1:] if like.is_meta else starts:
            d = min(c + side, high)
            yield _Tile(
                slice(a, b),
                slice(c, d),
                _hidden(range(first + a, first + b), range(c, d), scores.window, like),
                d == high,
            )


def _hidden(queries: range, keys: range, window: int, like: Tensor) -> Tensor | None:
    outside = window and queries[-1] - keys[0] >= window
    if keys[-1] <= queries[0] and not outside:
        return None
    at_C, of_M = (torch.arange(r.start, r.stop, device=like.device) for r in (queries, keys))
    back_CM = at_C[:, None] - of_M
    hidden_CM = back_CM < 0
    return hidden_CM | (back_CM >= window) if window else hidden_CM


def _grouped(x_BCHD: Tensor, groups: int, rows: slice) -> Tensor:
    """Queries of a tile as [B, G, R, D], heads of a group one after the other."""
    x_BCGSD = x_BCHD[:, rows].unflatten(2, (groups, -1))
    return x_BCGSD.permute(0, 2, 3, 1, 4).flatten(2, 3)


def _spread(x_BGRD: Tensor, queries: int) -> Tensor:
    """Back from `_grouped`: [B, C, H, D]."""
    return x_BGRD.unflatten(2, (-1, queries)).permute(0, 3, 1, 2, 4).flatten(2, 3)


def _scored(q_BGRD: Tensor, k_BGMD: Tensor, tile: _Tile, scores: Scores) -> Tensor:
    """s_BGRM in float32 or wider, capped, -inf where hidden."""
    wide = torch.promote_types(q_BGRD.dtype, torch.float32)
    s_BGRM = (q_BGRD @ k_BGMD.mT).to(wide).mul_(scores.scale)
    if scores.cap:
        s_BGRM.div_(scores.cap).tanh_().mul_(scores.cap)
    if tile.hidden_CM is not None:
        count = len(tile.hidden_CM)
        s_BGRM.unflatten(2, (-1, count)).masked_fill_(tile.hidden_CM, float("-inf"))
    return s_BGRM


def _keys(x_BMGD: Tensor, keys: slice) -> Tensor:
    return x_BMGD[:, keys].transpose(1, 2)


class _Tiled(Function):
    @staticmethod
    def forward(ctx: Any, q_BCHD: Tensor, k_BMGD: Tensor, v_BMGE: Tensor, how: Scores) -> Tensor:
        (B, C, H, _), groups = q_BCHD.shape, k_BMGD.shape[2]
        wide = torch.promote_types(q_BCHD.dtype, torch.float32)
        o_BCHE = q_BCHD.new_empty(B, C, H, v_BMGE.shape[-1])
        lse_BCH1 = q_BCHD.new_empty((B, C, H, 1), dtype=wide)
        run: tuple[Tensor, Tensor, Tensor] | None = None  # of a tile's rows: o, sum, maximum
        for tile in _tiles(C, k_BMGD.shape[1], how, q_BCHD):
            s = _scored(_grouped(q_BCHD, groups, tile.rows), _keys(k_BMGD, tile.keys), tile, how)
            top = s.amax(-1, keepdim=True)
            if run is not None:
                top = torch.maximum(top, run[2])
            # A row that saw nothing yet has -inf for its maximum: nothing to subtract.
            p = s.sub_(top.masked_fill(top.isneginf(), 0.0)).exp_()
            o = (p.to(v_BMGE.dtype) @ _keys(v_BMGE, tile.keys)).to(wide)
            total = p.sum(-1, keepdim=True)
            if run is not None:
                kept = (run[2] - top).nan_to_num_(0.0).exp_()
                o, total = o.add_(run[0].mul_(kept)), total.add_(run[1].mul_(kept))
            run = (o, total, top)
            if tile.last:
                size = tile.rows.stop - tile.rows.start
                o_BCHE[:, tile.rows] = _spread(o / total, size).to(o_BCHE.dtype)
                lse_BCH1[:, tile.rows] = _spread(top + total.log(), size)
                run = None
        ctx.save_for_backward(q_BCHD, k_BMGD, v_BMGE, o_BCHE, lse_BCH1)
        ctx.how = how
        return o_BCHE

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        q_BCHD, k_BMGD, v_BMGE, o_BCHE, lse_BCH1 = ctx.saved_tensors
        how, groups, (do_BCHE,) = ctx.how, k_BMGD.shape[2], slopes
        wide = lse_BCH1.dtype
        delta_BCH1 = (do_BCHE.to(wide) * o_BCHE.to(wide)).sum(-1, keepdim=True)
        dq, dk, dv = (torch.zeros_like(x) for x in (q_BCHD, k_BMGD, v_BMGE))
        for tile in _tiles(q_BCHD.shape[1], k_BMGD.shape[1], how, q_BCHD):
            q, do, lse, delta = (
                _grouped(x, groups, tile.rows) for x in (q_BCHD, do_BCHE, lse_BCH1, delta_BCH1)
            )
            k, v = _keys(k_BMGD, tile.keys), _keys(v_BMGE, tile.keys)
            s = _scored(q, k, tile, how)
            p = (s - lse).exp_()
            ds = (do @ v.mT).to(wide).sub_(delta).mul_(p)
            if how.cap:
                ds.mul_(1 - (s.masked_fill(s.isneginf(), 0.0) / how.cap).square())
            p, ds = p.to(q.dtype), ds.mul_(how.scale).to(q.dtype)
            dq[:, tile.rows] += _spread(ds @ k, tile.rows.stop - tile.rows.start)
            dk[:, tile.keys] += (ds.mT @ q).transpose(1, 2)
            dv[:, tile.keys] += (p.mT @ do).transpose(1, 2)
        return dq, dk, dv, None
