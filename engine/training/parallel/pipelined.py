"""A step whose layers are dealt to pipeline ranks, by any checked plan.

Each place of the plan is a set of tensor, context and data ranks that all follow the same line.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Tied:
    """An embedding that is the head too, by name, and the two pipeline ranks that have it (Megatron
    all-reduces their gradients, arXiv 1909.08053 and 2104.04473)."""

    name: str
    axis: Axis


def tied_ranks(plan: Plan, pipe: Axis) -> list[int]:
    """The ranks of the first stage and of the last, where they are two and this is one of them."""
    homes = {plan.rank_of[0], plan.rank_of[plan.stages - 1]}
    if len(homes) == 1 or pipe.at not in homes:
        return []
    return sorted(pipe.members[home] for home in homes)


def step(
    config: MeshTrainingConfig, plan: Plan, axis: Axis, stages: Mapping[int, ShardedStage],
    trained: Trained, given: tuple[Tensor, Tensor], tied: "Tied | None" = None,
) -> Tensor:  # fmt: skip
    """All passes of one step; the gradients are with `trained`, that of a `tied` head summed with
    its embedding's. The loss of this rank's tokens, as a share of all of them; nought where the
    last stage is elsewhere."""
    count = config.microbatches
    parts = [x.chunk(count) for x in given]
    batch = list(zip(*parts, strict=True))
    mine = {number: _stage(config, stage, batch[0][0]) for number, stage in stages.items()}
    # The sums over replicas and the update are made once all passes are done.
    ends = dict.fromkeys(WHOLE, _nothing)
    done = axis.follow(program(Duty(plan, axis.at, range(axis.size), mine, batch, ends)))
    found: dict[str, Tensor] = {}
    for gradients in done.gradients.values():
        for name, gradient in gradients.items():
            found[name] = found[name] + gradient if name in found else gradient
    if tied is not None:
        found[tied.name] = tied.axis.all_reduce(found[tied.name], "tied")
    trained.take(found)
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
