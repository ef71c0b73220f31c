"""Attention of some queries to some keys: one rank's work in one turn, forward and backward.

Shape letters: B sequences, G key/value heads, S query heads for each, C query tokens, M key tokens,
D head size. Positions are given as ascending ranges; a causal mask hides later ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

Spans = Sequence[range]


@dataclass(frozen=True)
class Tile:
    """Queries `rows` and the keys that any of them sees, as slices; `hidden` is None where all
    see all."""

    rows: slice
    keys: list[slice]
    hidden: Tensor | None


def pairs(queries: Spans, keys: Spans, causal: bool) -> int:
    """How many keys all queries see together."""
    if not causal:
        return sum(map(len, queries)) * sum(map(len, keys))
    found = 0
    for run in queries:
        at = np.arange(run.start, run.stop, run.step)
        for other in keys:
            seen = np.clip((at - other.start) // other.step + 1, 0, len(other))
            found += int(seen.sum())
    return found


def tiles(queries: Spans, keys: Spans, causal: bool, device: torch.device) -> Iterator[Tile]:
    """A tile for each run of queries that sees any key."""
    at = 0
    for run in queries:
        rows = slice(at, at + len(run))
        at += len(run)
        seen, places, masked, start = [], [], False, 0
        for other in keys:
            place = slice(start, start + len(other))
            start += len(other)
            if causal and other[0] > run[-1]:
                continue
            masked |= causal and other[-1] > run[0]
            seen.append(other)
            places.append(place)
        if not seen:
            continue
        hidden = None
        if masked:
            later = torch.cat([_arange(other, device) for other in seen])
            hidden = later[None, :] > _arange(run, device)[:, None]
        yield Tile(rows, places, hidden)


def _arange(run: range, device: torch.device) -> Tensor:
    return torch.arange(run.start, run.stop, run.step, device=device)


def chosen(x_BGMD: Tensor, places: Sequence[slice]) -> Tensor:
    """The tokens of `places`; no copy where they are one run."""
    parts = [x_BGMD[:, :, place] for place in places]
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def scores(q_BGSCD: Tensor, k_BGMD: Tensor, scale: float, hidden_CM: Tensor | None) -> Tensor:
    """s_BGSCM in float32 (or wider), -inf where hidden."""
    wide = torch.promote_types(q_BGSCD.dtype, torch.float32)
    s_BGSCM = (q_BGSCD @ k_BGMD[:, :, None].mT).to(wide) * scale
    return s_BGSCM if hidden_CM is None else s_BGSCM.masked_fill_(hidden_CM, float("-inf"))


def forward(
    q_BGSCD: Tensor, k_BGMD: Tensor, v_BGMD: Tensor, queries: Spans, keys: Spans, causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(o_BGSCD, lse_BGSC) of these keys alone; 0 and -inf for a query that sees none."""
    wide = torch.promote_types(q_BGSCD.dtype, torch.float32)
    o_BGSCD = torch.zeros_like(q_BGSCD)
    lse_BGSC = q_BGSCD.new_full(q_BGSCD.shape[:-1], float("-inf"), dtype=wide)
    for tile in tiles(queries, keys, causal, q_BGSCD.device):
        k, v = chosen(k_BGMD, tile.keys), chosen(v_BGMD, tile.keys)
        s = scores(q_BGSCD[..., tile.rows, :], k, scale, tile.hidden)
        lse = torch.logsumexp(s, -1)
        p = torch.exp(s - _finite(lse)[..., None]).to(q_BGSCD.dtype)
        o_BGSCD[..., tile.rows, :] = p @ v[:, :, None]
        lse_BGSC[..., tile.rows] = lse
    return o_BGSCD, lse_BGSC


def backward(
    q_BGSCD: Tensor, k_BGMD: Tensor, v_BGMD: Tensor, do_BGSCD: Tensor, lse_BGSC: Tensor,
    delta_BGSC: Tensor, queries: Spans, keys: Spans, causal: bool, scale: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """These keys' share of (dq, dk, dv). `lse` and `delta` (the sum of do · o) are of all keys."""
    dq, dk, dv = (torch.zeros_like(x) for x in (q_BGSCD, k_BGMD, v_BGMD))
    for tile in tiles(queries, keys, causal, q_BGSCD.device):
        rows = tile.rows
        k, v = chosen(k_BGMD, tile.keys), chosen(v_BGMD, tile.keys)
        q, do = q_BGSCD[..., rows, :], do_BGSCD[..., rows, :]
        s = scores(q, k, scale, tile.hidden)
        p = torch.exp(s - _finite(lse_BGSC[..., rows])[..., None])
        ds = p * ((do @ v[:, :, None].mT) - delta_BGSC[..., rows, None]) * scale
        p, ds = p.to(q.dtype), ds.to(q.dtype)
        dq[..., rows, :] += ds @ k[:, :, None]
        put(dk, (ds.mT @ q).sum(2), tile.keys)
        put(dv, (p.mT @ do).sum(2), tile.keys)
    return dq, dk, dv


def put(into_BGMD: Tensor, x_BGMD: Tensor, places: Sequence[slice]) -> None:
    """Add the tokens of `x` to those places."""
    at = 0
    for place in places:
        size = place.stop - place.start
        into_BGMD[:, :, place] += x_BGMD[:, :, at : at + size]
        at += size


def merge(
    o: Tensor, lse: Tensor, other: Tensor, other_lse: Tensor, rescale: bool = True
) -> tuple[Tensor, Tensor]:
    """Attention to two sets of keys from attention to each: weighted by their sums of exponentials.

    `rescale` false leaves the weights out, which is wrong, to show that it is.
    """
    both = torch.logaddexp(lse, other_lse)
    if not rescale:
        return (o + other) / 2, both
    here, there = (torch.exp(x - _finite(both))[..., None].to(o.dtype) for x in (lse, other_lse))
    return o * here + other * there, both


def _finite(lse: Tensor) -> Tensor:
    """0 where no key was seen, so that differences are -inf, not NaN."""
    return lse.masked_fill(torch.isneginf(lse), 0.0)
