"""A step whose layers are dealt to pipeline ranks, by any checked plan.

Each place of the plan is a set of tensor, context and data ranks that all follow the same line.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from engine.distributed.axis import Axis
from engine.distributed.transport import Shape
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.model import ShardedStage
from engine.training.parallel.zero import Trained
from engine.training.pipeline_program import Duty, program
from engine.training.plan import WHOLE, Plan
from engine.training.stage import Stage


def step(
    config: MeshTrainingConfig, plan: Plan, axis: Axis, stages: Mapping[int, ShardedStage],
    trained: Trained, given: tuple[Tensor, Tensor],
) -> Tensor:  # fmt: skip
    """All passes of one step; the gradients are with `trained`. The loss of this rank's tokens,
    as a share of all of them; nought where the last stage is elsewhere."""
    count = config.microbatches
    parts = [x.chunk(count) for x in given]
    batch = list(zip(*parts, strict=True))
    mine = {number: _stage(config, stage, batch[0][0]) for number, stage in stages.items()}
    # The sums over replicas and the update are made once all passes are done.
    ends = dict.fromkeys(WHOLE, _nothing)
    done = axis.follow(program(Duty(plan, axis.at, range(axis.size), mine, batch, ends)))
    trained.take({name: g for found in done.gradients.values() for name, g in found.items()})
    return torch.tensor(sum(done.losses.values()) / count)


def _nothing(stage: int, gradients: Mapping[str, Tensor]) -> None:
    """An end of the plan that is left to the whole step's."""


def _stage(config: MeshTrainingConfig, stage: ShardedStage, ids_BT: Tensor) -> Stage:
    """`stage` as a plan's runner wants it."""
    B, T = ids_BT.shape
    length = T // config.mesh.tensor if config.sequence else T
    between = Shape((B, length, config.model.hidden))
    tokens = config.batch * config.tokens / config.microbatches

    def loss(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
        return stage.loss(logits_BTV, targets_BT) / tokens

    return Stage(
        stage.everything(),
        stage.rest,
        between,
        between,
        stage.begin if stage.first else None,
        loss if stage.last else None,
    )


def owned(plan: Plan, place: int, cuts: Sequence[range]) -> dict[int, range]:
    """Layers of each stage that the plan's rank `place` has."""
    return {number: cuts[number] for number, home in plan.rank_of.items() if home == place}
