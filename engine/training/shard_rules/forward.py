"""The dense forward over shards of one process: each rank's part, then the sums that join them.

What comes out equals the dense forward's if the plan is right; a plan that is not right gives
something else or matrices that do not fit. Shape letters: B sequences, T tokens, C hidden.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.models.config import ModelConfig
from engine.models.layers import norm, softcap
from engine.models.parameters import layer_parameters, outer_parameters
from engine.models.reference import experts, feed_forward, keys_values, ordered, queries
from engine.training.shard_rules.plan import Plan, shards, span
from engine.training.streamed.attention import Scores, attend

Roles = dict[str, Tensor]
Phase = Callable[[int, str], AbstractContextManager[None]]  # rank, what it does


class Sharded:
    """`ranks` shards of a model that run one after the other. `phase` is told who does what."""

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Tensor], plan: Plan, ranks: int,
        phase: Phase,
    ) -> None:  # fmt: skip
        self.config, self.plan, self.ranks, self.phase = config, plan, ranks, phase
        self.shards = shards(config, weights, plan, ranks)

    def logits(self, ids_BT: Tensor) -> Tensor:
        """logits_BTV of token ids."""
        config = self.config
        outer, split = self._roles(None)
        x_BTC = self._embed(ids_BT, [w["embedding"] for w in outer], split["embedding"])
        if config.embedding_scale != 1.0:
            x_BTC = x_BTC * torch.tensor(config.embedding_scale, dtype=x_BTC.dtype)
        order = ordered(config, x_BTC)
        if config.rotary is None:
            x_BTC = x_BTC + outer[0]["positions"][order.positions_BT]
        for layer in range(config.layers):
            x_BTC = self._layer(layer, x_BTC, order.turn)
        x_BTC = norm(config, x_BTC, outer[0], "norm")
        role = "embedding" if config.tied else "head"
        parts = outer if split[role] == "rows" else outer[:1]
        said = []
        for rank, w in enumerate(parts):
            with self.phase(rank, "head"):
                said.append(F.linear(x_BTC, w[role]))
        return softcap(torch.cat(said, -1), config.logit_softcap)

    def _roles(self, layer: int | None) -> tuple[list[Roles], dict[str, str]]:
        """Each rank's shards by role, and how each role is split."""
        config = self.config
        of = outer_parameters(config) if layer is None else layer_parameters(config, layer)
        found: list[Roles] = [{} for _ in range(self.ranks)]
        for rank, shard in enumerate(self.shards):
            for p in of:
                found[rank] |= shard[p.name]
        return found, {role: self.plan[p.name] for p in of for role, _ in p.roles}

    def _embed(self, ids_BT: Tensor, tables: list[Tensor], split: str) -> Tensor:
        if split != "rows":
            return F.embedding(ids_BT, tables[0])
        found = []
        for rank, table in enumerate(tables):
            with self.phase(rank, "embedding"):
                here = span(self.config.vocab, self.ranks, rank)
                own_BT = (ids_BT >= here.start) & (ids_BT < here.stop)
                rows_BTC = F.embedding((ids_BT - here.start).where(own_BT, 0), table)
                found.append(rows_BTC * own_BT[..., None].to(table.dtype))
        return sum(found[1:], found[0])

    def _layer(self, layer: int, x_BTC: Tensor, turn: tuple[Tensor, Tensor] | None) -> Tensor:
        config = self.config
        roles, split = self._roles(layer)
        first = roles[0]
        h_BTC = norm(config, x_BTC, first, "attention_norm")
        together = self.ranks if split["out"] == "columns" else 1
        y_BTC = self._sum(
            "attention", roles[:together], lambda w: self._attend(layer, w, h_BTC, turn)
        )
        y_BTC = y_BTC + first["out.bias"] if "out.bias" in first else y_BTC
        x_BTC = x_BTC + (
            norm(config, y_BTC, first, "attention_post_norm") if config.sandwich else y_BTC
        )
        h_BTC = norm(config, x_BTC, first, "mlp_norm")
        routed = config.expert_layers[layer]
        together = self.ranks if split["experts.0.down" if routed else "down"] == "columns" else 1
        feed = experts if routed else feed_forward
        y_BTC = self._sum(
            "feed-forward", roles[:together], lambda w: feed(config, _once(w, w is first), h_BTC)
        )
        return x_BTC + (norm(config, y_BTC, first, "mlp_post_norm") if config.sandwich else y_BTC)

    def _attend(
        self, layer: int, w: Roles, x_BTC: Tensor, turn: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        config = self.config
        q = queries(config, w, x_BTC, turn)
        k, v = keys_values(config, w, x_BTC, turn)
        how = Scores(config.scale(layer), config.windows[layer], config.attention_softcap)
        return F.linear(attend(q, k, v, how).flatten(-2), w["out"])

    def _sum(self, name: str, parts: list[Roles], work: Callable[[Roles], Tensor]) -> Tensor:
        found = []
        for rank, w in enumerate(parts):
            with self.phase(rank, name):
                found.append(work(w))
        return sum(found[1:], found[0])


def _once(w: Roles, first: bool) -> Roles:
    """Biases that come after the sum, on the first rank alone."""
    return w if first else {role: x for role, x in w.items() if not role.endswith("down.bias")}
