"""Transformer block under tensor parallelism: the rank's heads, its part of the feed-forward.

Shape letters: B sequences, T tokens of the context rank, C hidden.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.parameters import layer_parameters
from engine.models.reference import keys_values, queries
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.attention import attend
from engine.training.parallel.tensor.experts import experts
from engine.training.parallel.tensor.latent import latent_inputs
from engine.training.parallel.tensor.layers import inner
from engine.training.parallel.tensor.shard_module import Roles, ShardModule
from engine.training.shard_rules.plan import Plan

Turn = tuple[Tensor, Tensor]


class Block(ShardModule):
    """One layer: each half begins with a column projection and ends with a row projection."""

    def __init__(
        self, config: ModelConfig, layer: int, weights: Mapping[str, Tensor],
        parallel: Parallelism, plan: Plan,
    ) -> None:  # fmt: skip
        super().__init__(layer_parameters(config, layer), weights, parallel, plan, config.kv_heads)
        self.config, self.layer = config, layer

    def forward(self, x_BTC: Tensor, turn: Turn | None) -> Tensor:
        config, task = self.config, f"layer_{self.layer}"
        y_BTC = self._attention(self.norm(config, x_BTC, "attention_norm"), turn, f"{task}.out")
        if config.sandwich:
            y_BTC = self.norm(config, y_BTC, "attention_post_norm")
        x_BTC = x_BTC + y_BTC
        y_BTC = self._feed_forward(self.norm(config, x_BTC, "mlp_norm"), f"{task}.down")
        if config.sandwich:
            y_BTC = self.norm(config, y_BTC, "mlp_post_norm")
        return x_BTC + y_BTC

    def _attention(self, x_BTC: Tensor, turn: Turn | None, task: str) -> Tensor:
        def heads(_rank: int, w: Roles) -> Tensor:
            return self._heads(w, x_BTC, turn, task)

        return self.joined("out", "attention", task, heads)

    def _heads(self, w: Roles, x_BTC: Tensor, turn: Turn | None, task: str) -> Tensor:
        """What a rank's heads add to the output."""
        config, parallel = self.config, self.parallel
        if config.latent is not None:
            assert turn is not None
            q, k, v = latent_inputs(config, parallel, w, x_BTC, turn, task)
        else:
            # Each tensor rank norms other heads, so each finds a share of the gradient.
            norms = [role for role in ("query_norm", "key_norm") if role in w]
            own = {**w, **{role: parallel.whole(w[role], True, role) for role in norms}}
            x_BTC = parallel.into(x_BTC, task)
            q = queries(config, own, x_BTC, turn)
            k, v = keys_values(config, own, x_BTC, turn)
        scale, window = config.scale(self.layer), config.windows[self.layer]
        o_BTHD = attend(parallel, q, k, v, scale, window, config.attention_softcap)
        return nn.functional.linear(o_BTHD.flatten(-2), w["out"])

    def _feed_forward(self, x_BTC: Tensor, task: str) -> Tensor:
        config, parallel = self.config, self.parallel

        def dense(_rank: int, w: Roles) -> Tensor:
            return nn.functional.linear(inner(config, w, parallel.into(x_BTC, task)), w["down"])

        def mixture(_rank: int, w: Roles) -> Tensor:
            return experts(config, parallel, w, x_BTC, task)

        if config.expert_layers[self.layer]:
            return self.joined("experts.0.down", "feed-forward", task, mixture, "shared.down")
        return self.joined("down", "feed-forward", task, dense)


def everything(parts: nn.ModuleList) -> dict[str, nn.Parameter]:
    """Every parameter of these layers by its Hugging Face name."""
    found: dict[str, nn.Parameter] = {}
    for block in parts:
        assert isinstance(block, Block)
        found |= block.named()
    return found
