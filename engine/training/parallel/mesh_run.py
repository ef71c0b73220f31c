"""Training step of one mesh rank: forward, backward, gradient sums, clipping, update.

In come a model with its weights and how it is dealt; token ids of each step; out come losses, and
at the end the whole weights on the first rank.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from engine.core.events import Level
from engine.distributed.axis import Axis
from engine.distributed.mesh import DIRECTIONS, Mesh
from engine.distributed.pieces import in_pieces
from engine.distributed.rank import Rank
from engine.distributed.transport import Shape
from engine.models.config import ModelConfig
from engine.models.parameters import all_parameters, outer_parameters
from engine.training.context_parallel.problem import dealt as dealt_positions
from engine.training.loop.precision import at_precision
from engine.training.parallel.ownership import layers_of, owned
from engine.training.parallel.parallelism import LeftOut, Parallelism
from engine.training.parallel.pipelined import Passes, Tied, tied_ranks
from engine.training.parallel.pipelined import step as pipelined
from engine.training.parallel.sharding_config import ShardingConfig
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.tensor.shards import joined, splits
from engine.training.parallel.zero.zero import Bytes, Learning, Trained

T = TypeVar("T")
KINDS = ("weights", "gradients", "optimiser")
ROOM = 1e-6  # beside the norm that gradients are divided by, as torch's clip_grad_norm_ has it


class Beginning(NamedTuple):
    """What a run begins with. `weights`: whole ones, float32 or float64, under
    their Hugging Face names."""

    model: ModelConfig
    weights: Mapping[str, Tensor]
    learning: Learning
    precision: str = "float32"
    left_out: LeftOut = "nothing"


class MeshRun:
    """`peaks`: bytes held between forward and backward of the last step, where it was not a plan of
    passes; `enter` is told each phase of a step."""

    def __init__(
        self, rank: Rank, dealing: ShardingConfig, given: Beginning,
        enter: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        rank.enter("starting")
        self.rank, self.dealing, self.model = rank, dealing, given.model
        self.precision, self.enter = given.precision, enter or rank.enter
        self.mesh = mesh = Mesh(rank, dealing.mesh)
        split = dealing.sequence_parallel
        self.parallel = Parallelism(
            mesh.axis("tensor"), mesh.axis("context"), [], dealing.attention, split, given.left_out
        )
        data, self.pipe = mesh.axis("data", "context"), mesh.axis("pipeline")
        self.tokens_apart = mesh.axis("data", "pipeline", "context")
        self.all = mesh.axis(*DIRECTIONS)
        self.stages: dict[int, ShardedStage] = {}
        had: dict[str, nn.Parameter] = {}
        plan = dealing.plan() if dealing.planned else None
        for number, part in layers_of(self.model, plan, self.pipe.at).items():
            made = ShardedStage(self.model, given.weights, self.parallel, part, had)
            self.stages[number] = made
            had |= made.named()
        # An embedding that is the head too, on two ranks: both sum its gradient, one counts it.
        ends = tied_ranks(plan, self.pipe) if plan is not None and self.model.tied else []
        tied = None
        if ends and given.left_out != "tied":
            tied = Tied(outer_parameters(self.model)[0].name, Axis(rank, "tied", ends))
        self.twice = tied.name if tied is not None and tied.axis.at > 0 else ""
        self.passes = None
        if plan is not None:
            self.passes = Passes(
                plan, self.pipe, self.stages, self.precision, split, self.enter, tied
            )
        if given.left_out == "gradients":
            data = Axis(rank, "dp", [rank.rank])
        self.trained = dealing.zero.trained(list(self.stages.values()), data, given.learning)
        self.peaks: list[Bytes] = []
        self._split = splits(self.model, dealing.mesh.tensor)

    def gradients(self, ids: Tensor) -> Tensor:
        """Forward, backward and the sums of a step; the mean loss of all its tokens.

        `ids`: [sequences, tokens + 1] of the whole step, from which the rank takes its part.
        """
        place, count = self.mesh.place, ids.shape[0] * (ids.shape[1] - 1)
        self.parallel.spans = self.dealing.spans(ids.shape[1] - 1)
        ids_BT, targets_BT = (
            each.to(self.rank.device)
            for each in own(self.dealing, ids, place["data"], place["context"])
        )
        if self.passes is None:
            loss = self._straight(ids_BT, targets_BT, count)
        else:
            loss = pipelined(self.passes, self.trained, (ids_BT, targets_BT), count)
        self.enter("collective")
        self.trained.finish()
        levels(self.rank, self.trained)
        return self.tokens_apart.all_reduce(loss, "loss")

    def norm(self, said: float = 0.0) -> tuple[float, float]:
        """Of the gradients of all ranks, each number once; and the sum of what all ranks `said`."""
        squares = torch.zeros((), dtype=torch.float64, device=self.rank.device)
        for name, slope in self.trained.slopes():
            if self._counted(name):
                squares += slope.double().square().sum()
        found = self.all.all_reduce(torch.stack([squares, squares.new_tensor(said)]), "norm")
        return float(found[0].sqrt()), float(found[1])

    def clip(self, norm: float, most: float) -> None:
        """Shrink the gradients, whose norm that is, to a norm of `most` where it is larger."""
        factor = most / (norm + ROOM)
        if factor < 1:
            self.trained.scale(factor)

    def update(self, rate: float, keep: bool = False) -> None:
        """The optimiser's step; its gradients go unless they are to be kept."""
        self.enter("optimiser")
        in_pieces(self.rank, "optimiser", lambda: self.trained.update(rate))
        if not keep:
            self.trained.forget()

    def whole(self) -> dict[str, Tensor] | None:
        """All weights by Hugging Face name on the first rank's processor, None on the others; all
        ranks ask."""
        place, shape, transport = self.mesh.place, self.mesh.shape, self.rank.transport
        mine = self.trained.weights()
        if place["data"] or place["context"]:
            return None
        if self.rank.rank:
            names = owned(self.dealing, self.model, self.rank.rank)
            transport.send(0, [mine[name] for name in names], "weights")
            return None
        kind = next(iter(mine.values())).dtype
        parts: list[dict[str, Tensor]] = [{} for _ in range(shape.tensor)]
        for other in shape.members(0, ("pipeline", "tensor")):
            found = {name: weight.cpu() for name, weight in mine.items()}
            if other:
                theirs = owned(self.dealing, self.model, other)
                shapes = [Shape(tuple(each.shape), kind) for each in theirs.values()]
                came = transport.take(transport.receive(other, shapes, "weights"))
                found = {name: each.cpu() for name, each in zip(theirs, came, strict=True)}
            parts[shape.place(other)["tensor"]] |= found
        return joined(all_parameters(self.model), parts, self._split)

    def _counted(self, name: str) -> bool:
        """Whether this rank's part of a gradient is another than all other ranks' parts."""
        shared = self._split[name] == "whole" and self.parallel.tensor.at > 0
        return not shared and name != self.twice

    def _straight(self, ids_BT: Tensor, targets_BT: Tensor, tokens: int) -> Tensor:
        """One forward and one backward of all layers; the loss of this rank's tokens, as a share
        of all."""
        stage = self.stages[0]
        forward = at_precision(self.precision, stage)
        self.enter("forward")
        loss = in_pieces(self.rank, "F", lambda: stage.loss(forward(ids_BT), targets_BT) / tokens)
        self.peaks = [levels(self.rank, self.trained)]
        self.enter("backward")
        in_pieces(self.rank, "B", loss.backward)
        return loss.detach()


def own(dealing: ShardingConfig, ids: Tensor, data: int, context: int) -> tuple[Tensor, Tensor]:
    """(ids_BT, targets_BT) of a replica's sequences and a context rank's positions."""
    rows = ids.chunk(dealing.mesh.data)[data]
    spans = dealing.spans(ids.shape[1] - 1)[context]
    # It takes tokens from the last dimension but one.
    given, targets = (
        dealt_positions(x[..., None], spans)[..., 0] for x in (rows[:, :-1], rows[:, 1:])
    )
    return given, targets


def levels(rank: Rank, trained: Trained) -> Bytes:
    """Emit and give the bytes that are held now."""
    found = trained.held()
    for kind, size in zip(KINDS, found, strict=True):
        rank.emit(Level(rank.now(), rank.lane, f"memory/{kind}", float(size)))
    return found
