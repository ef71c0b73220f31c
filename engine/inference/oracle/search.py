"""Route search: of all ways through layers with feed-forwards of two sizes the one that foretells
each next token best, token by token from the left (the oracle of Duo-LLM, arXiv 2410.10846).

A token's ways are a tree that branches in every layer; what earlier tokens left in the cache is
that of the ways they took. Not the best for a whole text: a token looks at its own loss alone.
Shape letters: B texts, T tokens, N ways so far, W whole ways, C hidden, L layers, G key/value
heads, D head size.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.duo.routes import BIG, NONE, SMALL
from engine.models.duo.shape import DuoFault
from engine.models.layers import feed_forward, linear, norm
from engine.models.parameters import layer_parameters, roles
from engine.models.reference import dense, embed, head, keys_values, queries
from engine.models.rotary import cos_sin, frequencies

Pick = Callable[[Tensor], Tensor]  # nats_BW -> which way each text's token goes, int64 [B]


@dataclass(frozen=True)
class Level:
    """A layer's ways: the one each goes on from, what it takes there, and how many big ones it may
    still take in this layer and those after it; all int64 [N]."""

    parent_N: Tensor  # among the ways before this layer
    choice_N: Tensor
    left_N: Tensor  # before the choice


@dataclass(frozen=True)
class Ways:
    """All ways with a number of big modules. `at_LW`: where each whole way stood before a layer."""

    levels: tuple[Level, ...]
    routes_WL: Tensor
    at_LW: Tensor


@dataclass(slots=True)
class Place:
    """A token with all its ways tried: what every layer's feed-forward gets of each way so far
    ([B, N, C], normalised), nats of the next token by whole way, and which way was taken."""

    inputs: list[Tensor]
    nats_BW: Tensor
    taken_B: Tensor


@cache
def ways(layers: int, big: int, skips: int = 0) -> Ways:
    """Those that take exactly `big` big ones, and in the other layers the small one or, in at most
    `skips` of them, none."""
    levels: list[Level] = []
    routes: list[list[int]] = [[]]
    left = [big]
    for layer in range(layers):
        made = []
        for parent, (route, may) in enumerate(zip(routes, left, strict=True)):
            rest = layers - layer - 1
            some = [SMALL, NONE] if route.count(NONE) < skips else [SMALL]
            for choice in ([BIG] if may else []) + (some if may <= rest else []):
                made.append((parent, choice, may, [*route, choice]))
        parents, choices, before, routes = (list(column) for column in zip(*made, strict=True))
        left = [may - (choice == BIG) for may, choice in zip(before, choices, strict=True)]
        levels.append(Level(*(torch.tensor(each) for each in (parents, choices, before))))
    at = torch.arange(len(routes))
    stood: list[Tensor] = []
    for level in reversed(levels):
        at = level.parent_N[at]
        stood.insert(0, at)
    return Ways(tuple(levels), torch.tensor(routes), torch.stack(stood))


def best(nats_BW: Tensor) -> Tensor:
    """The way with the least loss; of equals the first."""
    return nats_BW.argmin(1)


class OneLate:
    """Each token goes the way that was best for the one before it, which is wrong."""

    def __init__(self) -> None:
        self.last_B: Tensor | None = None

    def __call__(self, nats_BW: Tensor) -> Tensor:
        before, self.last_B = self.last_B, best(nats_BW)
        return torch.zeros_like(self.last_B) if before is None else before


def picking(fault: DuoFault) -> Pick:
    """How an oracle picks; of each search a new one."""
    return OneLate() if fault == "late" else best


def places(
    config: ModelConfig, weights: Mapping[str, Tensor], ids_BT: Tensor, those: Ways,
    pick: Pick = best,
) -> Iterator[Place]:  # fmt: skip
    """Every token but the last with all its ways tried, in order; `pick` says which it takes."""
    assert config.rotary is not None
    rows, length = ids_BT.shape
    cached = [[torch.zeros(rows, length, config.kv_heads, config.head_dim) for _ in "kv"]
              for _ in range(config.layers)]  # fmt: skip
    by_layer = [roles(layer_parameters(config, each), weights) for each in range(config.layers)]
    turn = cos_sin(
        config.rotary, frequencies(config.rotary), torch.arange(length), torch.float32
    )  # of each position
    for place in range(length - 1):
        x_BNC = embed(config, weights, ids_BT[:, place : place + 1])
        inputs: list[Tensor] = []
        kept: list[tuple[Tensor, Tensor]] = []
        for w, level, cache_2 in zip(by_layer, those.levels, cached, strict=True):
            y_BNC = norm(config, x_BNC, w, "attention_norm")
            here = tuple(each[place : place + 1][None] for each in turn)
            y_BNC, own = _attend(config, w, y_BNC, here, [c[:, :place] for c in cache_2])
            x_BNC, kept = x_BNC + y_BNC, [*kept, own]
            y_BNC = norm(config, x_BNC, w, "mlp_norm")
            inputs.append(y_BNC)
            x_BNC = x_BNC[:, level.parent_N] + _modules(config, w, y_BNC, level)
        logits_BWV = head(config, weights, x_BNC)
        target_BW = ids_BT[:, place + 1, None].expand(logits_BWV.shape[:2])
        nats_BW = F.cross_entropy(logits_BWV.transpose(1, 2), target_BW, reduction="none")
        taken_B = pick(nats_BW)
        for layer, own in enumerate(kept):
            at_B = those.at_LW[layer][taken_B]
            for name, each in zip((0, 1), own, strict=True):
                cached[layer][name][:, place] = each[torch.arange(rows), at_B]
        yield Place(inputs, nats_BW, taken_B)


def search(
    config: ModelConfig, weights: Mapping[str, Tensor], ids_BT: Tensor, those: Ways,
    pick: Pick = best,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Nats of each next token, float32 [B, T - 1], and the ways taken, int64 [B, T - 1, L]."""
    nats, taken = [], []
    with torch.inference_mode():
        for each in places(config, weights, ids_BT, those, pick):
            nats.append(each.nats_BW.gather(1, each.taken_B[:, None])[:, 0])
            taken.append(those.routes_WL[each.taken_B])
    return torch.stack(nats, 1), torch.stack(taken, 1)


def nats(
    config: ModelConfig, weights: Mapping[str, Tensor], ids_BT: Tensor,
    routes_BTL: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Nats of each next token, [B, T - 1], in whole passes, by the router or those routes."""
    with torch.inference_mode():
        logits_BTV = dense(config, weights, ids_BT[:, :-1], routes_BTL=routes_BTL)
        return F.cross_entropy(logits_BTV.transpose(1, 2), ids_BT[:, 1:], reduction="none")


def _attend(
    config: ModelConfig, w: dict[str, Tensor], x_BNC: Tensor, turn: tuple[Tensor, ...],
    cached: list[Tensor],
) -> tuple[Tensor, tuple[Tensor, Tensor]]:  # fmt: skip
    """What a layer's attention adds to each way, which sees the cache and itself; and its own key
    and value, [B, N, G, D]."""
    q_BNHD = queries(config, w, x_BNC, turn)  # type: ignore[arg-type]
    own = keys_values(config, w, x_BNC, turn)  # type: ignore[arg-type]
    groups = config.heads // config.kv_heads
    k, v, own_k, own_v = (x.repeat_interleave(groups, 2) for x in (*cached, *own))
    before = torch.einsum("bnhd,bshd->bnhs", q_BNHD, k)
    scores = torch.cat([before, (q_BNHD * own_k).sum(-1)[..., None]], -1) * config.attention_scale
    share = scores.softmax(-1)
    o_BNHD = torch.einsum("bnhs,bshd->bnhd", share[..., :-1], v) + share[..., -1:] * own_v
    return linear(w, "out", o_BNHD.flatten(-2)), own


def _modules(config: ModelConfig, w: dict[str, Tensor], x_BNC: Tensor, level: Level) -> Tensor:
    """What each way's module adds, of the ways behind this layer."""
    small, big = (feed_forward(config, w, x_BNC, prefix) for prefix in ("small.", ""))
    every_MBNC = torch.stack([torch.zeros_like(big), small, big])
    return every_MBNC[level.choice_N, :, level.parent_N].transpose(0, 1)
