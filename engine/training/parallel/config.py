"""Config of training steps on a mesh of real ranks: model, mesh, what is sharded."""

import torch
from pydantic import model_validator
from torch import Tensor

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.training.parallel.parallelism import LeftOut
from engine.training.parallel.sharding_config import ShardingConfig
from engine.training.parallel.sizes import Sizes
from engine.training.parallel.zero.zero import Learning

MODEL, MORE = "model", "more"
MOST = 16  # processes of one run


class MeshTrainingConfig(ShardingConfig):
    """Some steps of training on real ranks, held to one process's."""

    batch: int = knob(4, "sequences in a step", low=1, high=4096)
    tokens: int = knob(16, "of each sequence", low=2, high=1 << 15, unit="tokens")
    steps: int = knob(1, "optimiser steps", low=1, high=1000, unit="steps")
    model: Sizes = knob(make=Sizes, doc="the transformer", group=MODEL)
    learning: Learning = knob(make=Learning, doc="the optimiser", group=MODEL)
    seed: int = knob(0, "of weights and tokens", low=0, high=2**31 - 1, group=MORE)
    left_out: LeftOut = knob(
        "nothing", "a sum over ranks that is not made, which is wrong", group=MORE
    )
    limit: float = knob(120.0, "the run is ended after", low=1.0, high=3600.0, unit="s", group=MORE)

    @model_validator(mode="after")
    def _fits(self) -> "MeshTrainingConfig":
        if self.mesh.ranks > MOST:
            raise BadInput(
                f"mesh {self.mesh}: {self.mesh.ranks} ranks, at most {MOST} on one machine"
            )
        self.fits(self.model.model(), self.batch, self.tokens)
        return self

    def ids(self, step: int) -> Tensor:
        """Token ids [batch, tokens + 1] of a step."""
        draw = torch.Generator().manual_seed(self.seed * 1009 + step + 1)
        sizes = (self.batch, self.tokens + 1)
        return torch.randint(self.model.vocabulary, sizes, generator=draw)
