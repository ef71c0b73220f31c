"""A stage of a dense transformer on one rank, each weight cut to the tensor rank's part.

Weights come whole, under their Hugging Face names; the truth is `engine.models.reference.dense`.
Shape letters: B sequences, T tokens of the context rank, C hidden, V the rank's vocabulary.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.layers import ACTIVATIONS, norm, rms_norm, softcap
from engine.models.parameters import Parameter, layer_parameters
from engine.models.rotary import cos_sin, frequencies, rotate
from engine.training.parallel.attention import attend
from engine.training.parallel.cross_entropy import cross_entropy
from engine.training.parallel.layers import column, embedding, row
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.shards import cut, divides, stage_parameters, supported

Turn = tuple[Tensor, Tensor]


class Part(nn.Module):
    """Parameters by role, cut to the tensor rank's part; by Hugging Face name in `named`."""

    def __init__(
        self, parameters: Sequence[Parameter], weights: Mapping[str, Tensor], parallel: Parallelism
    ) -> None:
        super().__init__()
        self.parallel, self.of = parallel, list(parameters)
        axis = parallel.tensor
        for each in self.of:
            part = cut(each, weights[each.name], axis.at, axis.size)
            self.register_parameter(_field(each), nn.Parameter(part))

    def by_role(self) -> dict[str, Tensor]:
        return {each.roles[0][0]: getattr(self, _field(each)) for each in self.of}

    def named(self) -> dict[str, nn.Parameter]:
        return {each.name: getattr(self, _field(each)) for each in self.of}

    def norm(self, config: ModelConfig, x_BTC: Tensor, role: str) -> Tensor:
        """The norm of that role; under sequence parallelism of a part of the tokens."""
        split, w = self.parallel.sequence, self.by_role()
        mine = {
            name: self.parallel.whole(w[name], split, name)
            for name in (role, f"{role}.bias")
            if name in w
        }
        return norm(config, x_BTC, mine, role)


def _field(parameter: Parameter) -> str:
    return parameter.roles[0][0].replace(".", "_") + "_part"


class Block(Part):
    """One layer: attention and feed-forward, a column projection and a row projection each."""

    def __init__(
        self, config: ModelConfig, layer: int, weights: Mapping[str, Tensor], parallel: Parallelism
    ) -> None:
        super().__init__(layer_parameters(config, layer), weights, parallel)
        self.config, self.layer = config, layer

    def forward(self, x_BTC: Tensor, turn: Turn) -> Tensor:
        config, task = self.config, f"layer_{self.layer}"
        y_BTC = self._attention(self.norm(config, x_BTC, "attention_norm"), turn, f"{task}.out")
        if config.sandwich:
            y_BTC = self.norm(config, y_BTC, "attention_post_norm")
        x_BTC = x_BTC + y_BTC
        y_BTC = self._feed_forward(self.norm(config, x_BTC, "mlp_norm"), f"{task}.down")
        if config.sandwich:
            y_BTC = self.norm(config, y_BTC, "mlp_post_norm")
        return x_BTC + y_BTC

    def _attention(self, x_BTC: Tensor, turn: Turn, task: str) -> Tensor:
        config, w = self.config, self.by_role()
        assert config.rotary is not None
        x_BTC = self.parallel.into(x_BTC, task)
        q, k, v = (
            column(w, role, x_BTC).unflatten(-1, (-1, config.head_dim))
            for role in ("query", "key", "value")
        )
        if config.qk_norm:
            # Each tensor rank norms other heads, so each finds a share of the gradient.
            q_norm, k_norm = (
                self.parallel.whole(w[role], True, role) for role in ("query_norm", "key_norm")
            )
            q, k = rms_norm(q, q_norm, config.norm_eps), rms_norm(k, k_norm, config.norm_eps)
        q, k = (rotate(x, *turn, config.rotary.interleaved) for x in (q, k))
        o_BTHD = attend(self.parallel, q, k, v, config.scale(self.layer))
        return row(self.parallel, w, "out", o_BTHD.flatten(-2), task)

    def _feed_forward(self, x_BTC: Tensor, task: str) -> Tensor:
        w, act = self.by_role(), ACTIVATIONS[self.config.activation]
        x_BTC = self.parallel.into(x_BTC, task)
        up = column(w, "up", x_BTC)
        inner = act(column(w, "gate", x_BTC)) * up if self.config.gated else act(up)
        return row(self.parallel, w, "down", inner, task)


class ShardedStage(Part):
    """Consecutive layers; the first stage begins with ids, the last ends with logits.

    Between stages activations are whole along the hidden size, and a tensor rank's part of the
    tokens under sequence parallelism. Raises BadInput where the model cannot be split so.
    """

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Tensor], parallel: Parallelism,
        layers: range | None = None,
    ) -> None:  # fmt: skip
        supported(config)
        divides(config, parallel.tensor.size)
        layers = range(config.layers) if layers is None else layers
        self.first, self.last = layers.start == 0, layers.stop == config.layers
        super().__init__(
            list(stage_parameters(config, [], self.first, self.last)), weights, parallel
        )
        self.config, self.layers = config, layers
        self.blocks = nn.ModuleList(Block(config, at, weights, parallel) for at in layers)

    def everything(self) -> dict[str, nn.Parameter]:
        """Every parameter of the stage by its Hugging Face name."""
        found = self.named()
        for block in self.blocks:
            assert isinstance(block, Block)
            found |= block.named()
        return found

    def forward(self, x: Tensor) -> Tensor:
        """logits_BTV of the last stage, else x_BTC; from ids_BT in the first, else from x_BTC."""
        return self.rest(self.begin(x) if self.first else x)

    def begin(self, ids_BT: Tensor) -> Tensor:
        """x_BTC before the first layer."""
        x_BTC = embedding(self.parallel, self.by_role()["embedding"], ids_BT)
        scale = self.config.embedding_scale
        return x_BTC * scale if scale != 1.0 else x_BTC

    def rest(self, x: Tensor) -> Tensor:
        """The layers, and in the last stage the head."""
        config, parallel = self.config, self.parallel
        turn = self.turn(x.dtype)
        for block in self.blocks:
            x = block(x, turn)
        if not self.last:
            return x
        x = parallel.into(self.norm(config, x, "norm"), "head")
        w = self.by_role()
        logits_BTV = column(w, "head" if "head" in w else "embedding", x)
        return softcap(logits_BTV, config.logit_softcap)

    def turn(self, dtype: torch.dtype) -> Turn:
        """Cosines and sines of the positions that this context rank has."""
        config, spans = self.config, self.parallel.spans
        assert config.rotary is not None
        own = [torch.tensor(list(run)) for run in spans[self.parallel.context.at]]
        positions_T = torch.cat(own)
        length = sum(len(run) for each in spans for run in each)
        waves = frequencies(config.rotary, torch.full((len(positions_T),), length))
        return cos_sin(config.rotary, waves, positions_T, dtype)

    def loss(self, logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
        """The sum over this rank's tokens, in nats."""
        flat_NV = logits_BTV.flatten(0, 1)
        return cross_entropy(flat_NV, targets_BT.flatten(), self.parallel.tensor).sum()
