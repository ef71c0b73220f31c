"""Learner on a mesh: this rank's part of a model under the training loop."""

from collections.abc import Callable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from engine.distributed.rank import Rank
from engine.models.config import ModelConfig
from engine.training.loop.checkpoint import Facts, Saved
from engine.training.loop.learner import Learner
from engine.training.loop.phases import Phases
from engine.training.loop.resume import require_same
from engine.training.loop.settings import BETA1, Training
from engine.training.parallel.checkpoint import dealt, load_mesh, save_mesh
from engine.training.parallel.mesh_run import Beginning, MeshRun
from engine.training.parallel.sharding_config import ShardingConfig
from engine.training.parallel.zero.zero import Learning


class OnMesh(Learner):
    """`ids_of`: the token ids [sequences, tokens + 1] of a whole step, the same on all ranks; what
    tells this rank's `phases` tells them to whoever watches it."""

    def __init__(
        self, rank: Rank, dealing: ShardingConfig, recipe: Training, model: ModelConfig,
        weights: Mapping[str, Tensor], ids_of: Callable[[int], Tensor], phases: Phases,
        checkpoint: Path | None = None,
    ) -> None:  # fmt: skip
        self.rank, self.recipe, self.ids_of, self.phases = rank, recipe, ids_of, phases
        self.place = checkpoint
        learning = Learning(
            rate=recipe.rate, beta1=BETA1, beta2=recipe.beta2, eps=recipe.eps,
            weight_decay=recipe.weight_decay,
        )  # fmt: skip
        given = Beginning(model, weights, learning, recipe.precision)
        self.run = MeshRun(rank, dealing, given, phases.go_on)
        self.facts = dealt(self.run)

    def enter(self, phase: str, step: int) -> None:
        self.phases.enter(phase, step)

    def wait(self) -> None:
        self.rank.transport.barrier()

    def gradients(self, step: int) -> tuple[float, int]:
        ids = self.ids_of(step)
        loss = self.run.gradients(ids)
        return float(loss), ids.shape[0] * (ids.shape[1] - 1)

    def update(self, rate: float, asked: bool) -> tuple[float, bool]:
        norm, said = self.run.norm(float(asked))
        self.run.clip(norm, self.recipe.clip)
        self.run.update(rate)
        return norm, said > 0

    def resume(self, facts: Facts) -> Saved | None:
        assert self.place is not None
        return load_mesh(self.place, self.run, facts, require_same)

    def save(self, step: int, facts: Facts) -> None:
        assert self.place is not None
        save_mesh(self.place, self.run, step, facts, self.phases.go_on)

    def whole(self) -> dict[str, Tensor] | None:
        with torch.no_grad():
            return self.run.whole()
