"""One rank's training steps on a mesh, told as spans of its lane and bytes held."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from engine.core.events import Level, Mark
from engine.distributed.axis import Axis
from engine.distributed.mesh import Mesh
from engine.distributed.pieces import in_pieces
from engine.distributed.rank import Rank
from engine.models.config import ModelConfig
from engine.models.parameters import outer_parameters
from engine.training.language import fresh_weights
from engine.training.parallel.config import MeshTrainingConfig
from engine.training.parallel.model import ShardedStage
from engine.training.parallel.parallelism import Parallelism
from engine.training.parallel.pipelined import Tied, owned, tied_ranks
from engine.training.parallel.pipelined import step as pipelined
from engine.training.parallel.zero import Bytes, Trained
from engine.training.sequence.problem import dealt as dealt_positions
from engine.training.stage import dealt

T = TypeVar("T")
STEP = "step"  # a mark where a rank begins one
KINDS = ("weights", "gradients", "optimiser")


def work(rank: Rank, configs: list[MeshTrainingConfig]) -> None:
    """Every config's steps, one after another; arrays are named by the config's place."""
    for place, config in enumerate(configs):
        train(rank, config, f"{place}/")


def train(rank: Rank, config: MeshTrainingConfig, prefix: str = "") -> None:
    """The steps of one config. Leaves arrays gradient/NAME and weight/NAME of the tensor rank's
    parts, losses, and bytes: `peaks` after each forward, `held` after the last backward."""
    run = MeshRun(rank, config)
    trained, record, losses = run.trained, rank.record, []
    for at in range(config.steps):
        rank.emit(Mark(rank.now(), rank.lane, STEP, f"step {at}"))
        losses.append(run.gradients(at))
        held = trained.held()
        _said(rank, "optimiser", trained.update)
        if at + 1 < config.steps:
            trained.forget()
    _levels(rank, trained)
    told = len(record.events)
    record.put(f"{prefix}losses", torch.stack(losses).numpy())
    if run.peaks:
        record.put(f"{prefix}peaks", torch.tensor(run.peaks).numpy())
    for name, gradient in trained.gradients().items():
        record.put(f"{prefix}gradient/{name}", gradient.numpy().copy())
    for name, weight in trained.weights().items():
        record.put(f"{prefix}weight/{name}", weight.numpy())
    record.put(f"{prefix}held", torch.tensor(held).numpy())
    # What was gathered to be given back is no part of training.
    del record.events[told:]


class MeshRun:
    """One rank's end of a training run. `peaks`: bytes held between forward and backward."""

    def __init__(self, rank: Rank, config: MeshTrainingConfig) -> None:
        rank.enter("starting")
        self.rank, self.config, self.mesh = rank, config, Mesh(rank, config.mesh)
        mesh, model = self.mesh, config.model.model()
        tensor, context = mesh.axis("tensor"), mesh.axis("context")
        data, self.pipe = mesh.axis("data", "context"), mesh.axis("pipeline")
        self.everyone = mesh.axis("data", "pipeline", "context")
        parallel = Parallelism(
            tensor, context, config.spans(), config.attention, config.sequence, config.left_out
        )
        self.plan, layers = None, {0: range(model.layers)}
        if config.planned:
            self.plan = config.plan()
            layers = owned(self.plan, self.pipe.at, dealt(model.layers, self.plan.stages))
        weights = fresh(config)
        self.stages: dict[int, ShardedStage] = {}
        had: dict[str, nn.Parameter] = {}
        for number, part in layers.items():
            self.stages[number] = made = ShardedStage(model, weights, parallel, part, had)
            had |= made.named()
        self.tied = self._tied(model)
        if config.left_out == "gradients":
            data = Axis(rank, "dp", [rank.rank])
        self.trained = config.zero.trained(list(self.stages.values()), data, config.learning)
        self.peaks: list[Bytes] = []

    def gradients(self, step: int) -> Tensor:
        """Forward, backward and the sums of a step; the loss of all its tokens."""
        config, place = self.config, self.mesh.place
        given = own(config, config.ids(step), place["data"], place["context"])
        if self.plan is None:
            loss = self._passes(given)
        else:
            loss = pipelined(
                config, self.plan, self.pipe, self.stages, self.trained, given, self.tied
            )
        self.trained.finish()
        _levels(self.rank, self.trained)
        return self.everyone.all_reduce(loss, "loss")

    def update(self) -> None:
        """The optimiser's step; its gradients go."""
        _said(self.rank, "optimiser", self.trained.update)
        self.trained.forget()

    def _tied(self, model: ModelConfig) -> Tied | None:
        if self.plan is None or not model.tied or self.config.left_out == "tied":
            return None
        both = tied_ranks(self.plan, self.pipe)
        return (
            Tied(outer_parameters(model)[0].name, Axis(self.rank, "tied", both)) if both else None
        )

    def _passes(self, given: tuple[Tensor, Tensor]) -> Tensor:
        """One forward and one backward of all layers; the loss of this rank's tokens, as a share
        of all."""
        stage, config, (ids_BT, targets_BT) = self.stages[0], self.config, given

        def forward() -> Tensor:
            return stage.loss(stage(ids_BT), targets_BT) / (config.batch * config.tokens)

        loss = _said(self.rank, "F", forward)
        self.peaks.append(_levels(self.rank, self.trained))
        _said(self.rank, "B", loss.backward)
        return loss.detach()


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
    # It takes tokens from the last dimension but one.
    given, targets = (
        dealt_positions(x[..., None], spans)[..., 0] for x in (rows[:, :-1], rows[:, 1:])
    )
    return given, targets


def _said(rank: Rank, name: str, act: Callable[[], T]) -> T:
    rank.enter({"F": "forward", "B": "backward"}.get(name, name))
    return in_pieces(rank, name, act)


def _levels(rank: Rank, trained: Trained) -> Bytes:
    held = trained.held()
    for kind, size in zip(KINDS, held, strict=True):
        rank.emit(Level(rank.now(), rank.lane, f"memory/{kind}", float(size)))
    return held
