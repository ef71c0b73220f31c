"""Pipeline-parallel step on the mesh: stages of layers, driven by any checked plan.

Each place of the plan is a set of tensor, context and data ranks that all follow the same line.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from engine.distributed.axis import Axis
from engine.distributed.program import Compute, Program, Step, through
from engine.distributed.transport import Shape
from engine.training.loop.precision import at_precision
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.zero.zero import Trained
from engine.training.plan.actions import WHOLE, Plan
from engine.training.stages.program import Duty, program
from engine.training.stages.stage import Stage

T = TypeVar("T")
PHASES = {"F": "forward", "B": "backward", "I": "backward", "W": "backward"}  # by action


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


@dataclass(frozen=True)
class Passes:
    """What a pipeline rank does in every step: its stages of `plan` along `axis`.

    `split`: norms see a tensor rank's part of the tokens; `enter` is told of each pass whether it
    is forward or backward.
    """

    plan: Plan
    axis: Axis
    stages: Mapping[int, ShardedStage]
    precision: str
    split: bool
    enter: Callable[[str], None]
    tied: Tied | None = None


def step(passes: Passes, trained: Trained, given: tuple[Tensor, Tensor], tokens: int) -> Tensor:
    """All passes of one step; the gradients are with `trained`, that of a tied head summed with
    its embedding's. The loss of this rank's tokens, as a share of all `tokens` of the step; nought
    where the last stage is elsewhere."""
    plan, axis, tied, count = passes.plan, passes.axis, passes.tied, passes.plan.microbatches
    parts = [x.chunk(count) for x in given]
    batch = list(zip(*parts, strict=True))
    share, shape = tokens / count, tuple(batch[0][0].shape)
    mine = {at: _stage(passes, stage, shape, share) for at, stage in passes.stages.items()}
    # The sums over replicas and the update are made once all passes are done.
    ends = dict.fromkeys(WHOLE, _nothing)
    duty = Duty(plan, axis.at, range(axis.size), mine, batch, ends)
    done = axis.follow(_told(program(duty), passes.enter))
    found: dict[str, Tensor] = {}
    for gradients in done.gradients.values():
        for name, gradient in gradients.items():
            found[name] = found[name] + gradient if name in found else gradient
    if tied is not None:
        found[tied.name] = tied.axis.all_reduce(found[tied.name], "tied")
    trained.take(found)
    kind = next(iter(trained.named.values())).dtype
    loss = sum(done.losses.values()) / count
    return torch.tensor(loss, dtype=kind, device=axis.rank.device)


def _told(program: Program[T], enter: Callable[[str], None]) -> Program[T]:
    """`program`, saying of its passes which they are."""

    def tell(step: Step) -> Generator[Step, Any, Any]:
        if isinstance(step, Compute) and step.name in PHASES:
            enter(PHASES[step.name])
        return (yield step)

    return through(program, tell)


def _nothing(stage: int, gradients: Mapping[str, Tensor]) -> None:
    """An end of the plan that is left to the whole step's."""


def _stage(passes: Passes, stage: ShardedStage, sizes: tuple[int, ...], tokens: float) -> Stage:
    """`stage` as a plan's runner wants it, for microbatches of ids of those sizes."""
    B, T = sizes
    length = T // stage.parallel.tensor.size if passes.split else T
    kind = next(iter(stage.everything().values())).dtype
    between = Shape((B, length, stage.config.hidden), kind)
    rest, begin = (at_precision(passes.precision, each) for each in (stage.rest, stage.begin))

    def loss(logits_BTV: Tensor, targets_BT: Tensor) -> Tensor:
        return stage.loss(logits_BTV, targets_BT) / tokens

    return Stage(
        stage.everything(),
        rest,
        between,
        between,
        begin if stage.first else None,
        loss if stage.last else None,
    )
