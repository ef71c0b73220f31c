"""One rank's training steps on a mesh, told as spans of its lane and bytes held."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from engine.core.events import Level, Span
from engine.distributed.axis import Axis
from engine.distributed.mesh import Mesh
from engine.distributed.rank import Rank
from engine.training.language import fresh_weights
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.model import ShardedStage
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.zero import Bytes, Trained
from engine.training.sequence.problem import dealt

T = TypeVar("T")
KINDS = ("weights", "gradients", "optimiser")


def work(rank: Rank, configs: list[MeshTrainingConfig]) -> None:
    """Every config's steps, one after another; arrays are named by the config's place."""
    for place, config in enumerate(configs):
        train(rank, config, f"{place}/")


def train(rank: Rank, config: MeshTrainingConfig, prefix: str = "") -> None:
    """The steps of one config. Leaves arrays gradient/NAME and weight/NAME of the tensor rank's
    parts, losses, and bytes: `peaks` after each forward, `held` after the last backward."""
    rank.enter("starting")
    mesh = Mesh(rank, config.mesh)
    tensor, context = mesh.axis("tensor"), mesh.axis("context")
    data = mesh.axis("data", "context")
    parallel = Parallelism(
        tensor, context, config.spans(), config.attention, config.sequence, config.left_out
    )
    stage = ShardedStage(config.model.model(), fresh(config), parallel)
    if config.left_out == "gradients":
        data = Axis(rank, "dp", [rank.rank])
    trained = config.zero.trained(stage, data, config.learning)
    losses, peaks = list[Tensor](), list[Bytes]()
    for step in range(config.steps):
        losses.append(_step(rank, config, trained, step, mesh.axis("data", "context"), peaks))
        if step + 1 < config.steps:
            _said(rank, "optimiser", trained.update)
            trained.forget()
    record = rank.record
    record.put(f"{prefix}losses", torch.stack(losses).numpy())
    record.put(f"{prefix}peaks", torch.tensor(peaks).numpy())
    for name, gradient in trained.gradients().items():
        record.put(f"{prefix}gradient/{name}", gradient.numpy())
    held = trained.held()
    _said(rank, "optimiser", trained.update)
    for name, weight in trained.weights().items():
        record.put(f"{prefix}weight/{name}", weight.numpy())
    held = held._replace(optimiser=trained.held().optimiser)
    record.put(f"{prefix}held", torch.tensor(held).numpy())
    _levels(rank, trained)


def fresh(config: MeshTrainingConfig) -> dict[str, Tensor]:
    """The weights that all ranks start from, the norms' and biases' drawn too."""
    found = fresh_weights(config.model.model(), config.seed)
    draw = torch.Generator().manual_seed(config.seed)
    for weight in found.values():
        if weight.ndim == 1:
            weight += 0.1 * torch.randn(weight.shape, generator=draw)
        else:
            # Fresh weights are so small that softmax is flat and many gradients nearly nought.
            weight *= 4
    return found


def own(config: MeshTrainingConfig, ids: Tensor, data: int, context: int) -> tuple[Tensor, Tensor]:
    """(ids_BT, targets_BT) of a replica's sequences and a context rank's positions."""
    rows = ids.chunk(config.mesh.data)[data]
    spans = config.spans()[context]
    # `dealt` takes tokens from the last dimension but one.
    given, targets = (dealt(x[..., None], spans)[..., 0] for x in (rows[:, :-1], rows[:, 1:]))
    return given, targets


def _step(rank: Rank, config: MeshTrainingConfig, trained: Trained, step: int,
          everyone: Axis, peaks: list[Bytes]) -> Tensor:  # fmt: skip
    """Forward, backward and the sums of one step; the loss of all tokens. `peaks` gets the bytes
    held between forward and backward."""
    place = config.mesh.place(rank.rank)
    ids_BT, targets_BT = own(config, config.ids(step), place["data"], place["context"])
    stage = trained.stage

    def forward() -> Tensor:
        loss = stage.loss(stage(ids_BT), targets_BT)
        return loss / (config.batch * config.tokens)

    loss = _said(rank, "F", forward)
    peaks.append(_levels(rank, trained))
    _said(rank, "B", loss.backward)
    trained.finish()
    _levels(rank, trained)
    return everyone.all_reduce(loss.detach(), "loss")


def _said(rank: Rank, name: str, act: Callable[[], T]) -> T:
    """What `act` gives; a span of that name wherever the lane has nothing else meanwhile."""
    rank.enter({"F": "forward", "B": "backward"}.get(name, name))
    start, before = rank.now(), len(rank.record.events)
    made = act()
    stop = rank.now()
    events = rank.record.events
    inside = [e for e in events[before:] if isinstance(e, Span) and e.lane == rank.lane]
    at = start
    for span in sorted(inside, key=lambda span: span.start):
        if span.start > at:
            events.append(Span(span.start, rank.lane, name, at))
        at = max(at, span.stop)
    events.append(Span(stop, rank.lane, name, at))
    return made


def _levels(rank: Rank, trained: Trained) -> Bytes:
    held = trained.held()
    for kind, size in zip(KINDS, held, strict=True):
        rank.emit(Level(rank.now(), rank.lane, f"memory/{kind}", float(size)))
    return held
