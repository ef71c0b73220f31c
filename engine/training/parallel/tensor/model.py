"""Model stage on one rank: consecutive layers, each weight cut to the tensor rank's shard.

Any family the engine loads; weights come whole, under their Hugging Face names. The truth is
`engine.models.reference.dense`.
Shape letters: B sequences, T tokens of the context rank, C hidden, V the rank's vocabulary.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from engine.models.config import ModelConfig
from engine.models.layers import softcap
from engine.models.rotary import cos_sin, frequencies
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.tensor.block import Block, Turn, everything
from engine.training.parallel.tensor.cross_entropy import cross_entropy
from engine.training.parallel.tensor.layers import column, embedding
from engine.training.parallel.tensor.shard_module import Roles, ShardModule
from engine.training.parallel.tensor.shards import divides, splits, stage_parameters, supported
from engine.training.shard_rules.plan import Plan, span


class ShardedStage(ShardModule):
    """Consecutive layers; the first stage begins with ids, the last ends with logits.

    Between stages activations are whole along the hidden size, and a tensor rank's part of the
    tokens under sequence parallelism. `had`: parameters of another stage on this rank; a tied head
    is the same one there. `plan`: which part of each weight a rank has, where it is not the one
    that the rules derive; one that is not right gives something else, or matrices that do not fit.
    Raises BadInput where the model cannot be split so.
    """

    def __init__(
        self, config: ModelConfig, weights: Mapping[str, Tensor], parallel: Parallelism,
        layers: range | None = None, had: Mapping[str, nn.Parameter] | None = None,
        plan: Plan | None = None,
    ) -> None:  # fmt: skip
        supported(config, parallel.context.size)
        divides(config, parallel.tensor.size)
        layers = range(config.layers) if layers is None else layers
        self.first, self.last = layers.start == 0, layers.stop == config.layers
        plan = splits(config, parallel.ranks) if plan is None else plan
        outer = list(stage_parameters(config, [], self.first, self.last))
        super().__init__(outer, weights, parallel, plan, had=had)
        self.config, self.layers = config, layers
        self.blocks = nn.ModuleList(Block(config, at, weights, parallel, plan) for at in layers)

    def everything(self) -> dict[str, nn.Parameter]:
        """Every parameter of the stage by its Hugging Face name."""
        return self.named() | everything(self.blocks)

    def forward(self, x: Tensor) -> Tensor:
        """logits_BTV of the last stage, else x_BTC; from ids_BT in the first, else from x_BTC."""
        return self.rest(self.begin(x) if self.first else x)

    def begin(self, ids_BT: Tensor) -> Tensor:
        """x_BTC before the first layer."""
        w, scale, vocab = self.by_role(), self.config.embedding_scale, self.config.vocab

        def rows(rank: int, w: Roles) -> Tensor:
            return embedding(w["embedding"], ids_BT, span(vocab, self.parallel.ranks, rank).start)

        x_BTC = self.joined("embedding", "embedding", "embedding", rows)
        x_BTC = x_BTC * scale if scale != 1.0 else x_BTC
        if self.config.rotary is not None:
            return x_BTC
        split, own_T = self.parallel.sequence_parallel, self.positions()
        if split:
            own_T = own_T.chunk(self.parallel.tensor.size)[self.parallel.tensor.at]
        return x_BTC + self.parallel.whole(w["positions"], split, "positions")[own_T]

    def rest(self, x: Tensor) -> Tensor:
        """The layers, and in the last stage the head."""
        config, parallel = self.config, self.parallel
        turn = self.turn(x.dtype)
        for block in self.blocks:
            x = block(x, turn)
        if not self.last:
            return x
        x = parallel.into(self.norm(config, x, "norm"), "head")
        role = "head" if "head" in self.splits else "embedding"
        logits = self.parts(role, "head", lambda _, w: column(w, role, x))
        return softcap(torch.cat(logits, -1), config.logit_softcap)

    def positions(self) -> Tensor:
        """positions_T that this context rank has."""
        own = self.parallel.spans[self.parallel.context.at]
        runs = [torch.arange(run.start, run.stop, run.step) for run in own]
        return torch.cat(runs).to(self.parallel.device)

    def turn(self, dtype: torch.dtype) -> Turn | None:
        """Cosines and sines of those positions; None where positions are learnt."""
        rotary, positions_T = self.config.rotary, self.positions()
        if rotary is None:
            return None
        length = sum(len(run) for each in self.parallel.spans for run in each)
        # Few numbers, made beside the device, where a family's way to stretch them is written.
        waves = frequencies(rotary, torch.full((len(positions_T),), length))
        return cos_sin(rotary, waves.to(positions_T.device), positions_T, dtype)

    def loss(self, logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
        """The sum over this rank's tokens, in nats."""
        flat_NV = logits_BTV.flatten(0, 1)
        return cross_entropy(flat_NV, targets_BT.flatten(), self.parallel.tensor).sum()
