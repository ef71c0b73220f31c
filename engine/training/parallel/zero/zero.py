"""ZeRO: which of a replica's states are sharded over data-parallel ranks (arXiv 1910.02054).

A stage wraps a rank's model and optimiser; gradients and weights come back whole for comparison.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from engine.core.config import Config, Policy, knob
from engine.distributed.axis import Axis
from engine.training.loop.flat_adamw import FlatAdamW
from engine.training.parallel.tensor.model import ShardedStage


class Learning(Config):
    """AdamW (arXiv 1711.05101), which decays matrices only."""

    rate: float = knob(1e-3, "learning rate", low=0.0, high=1.0)
    beta1: float = knob(0.9, "memory of gradients", low=0.0, high=0.999)
    beta2: float = knob(0.95, "memory of squared gradients", low=0.0, high=0.9999)
    eps: float = knob(1e-8, "added to the root of squared gradients", low=1e-12, high=1.0, log=True)
    weight_decay: float = knob(0.1, "decay of matrices", low=0.0, high=1.0)


class Bytes(NamedTuple):
    """What a rank holds of a model's states. The optimiser's are its two moments."""

    weights: int
    gradients: int
    optimiser: int


class Trained(ABC):
    """A rank's stages while they learn. Gradients are sums over `axis`: the loss is divided by all
    tokens before backward."""

    def __init__(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> None:
        self.stages, self.axis, self.learning = stages, axis, learning

    @property
    def named(self) -> dict[str, nn.Parameter]:
        """Every parameter of the rank's stages by its Hugging Face name."""
        return {name: p for stage in self.stages for name, p in stage.everything().items()}

    def take(self, gradients: Mapping[str, Tensor]) -> None:
        """Gradients that came by another way than `backward` of a loss."""
        for name, parameter in self.named.items():
            found = gradients.get(name)
            if found is None:  # nothing depends on it smoothly, such as what steers a router
                found = torch.zeros_like(parameter)
            if parameter.grad is None:
                parameter.grad = found
            else:
                parameter.grad.copy_(found)

    @abstractmethod
    def finish(self) -> None:
        """After backward: until the gradients this rank needs are sums over the axis."""

    @abstractmethod
    def slopes(self) -> Iterator[tuple[str, Tensor]]:
        """After `finish`: the numbers of the gradients that this rank answers for, by parameter, as
        the tensors themselves; over the ranks of the axis each number once."""

    @abstractmethod
    def scale(self, factor: float) -> None:
        """Multiply the gradients, as clipping does."""

    @abstractmethod
    def update(self, rate: float) -> None:
        """One step of AdamW."""

    @abstractmethod
    def forget(self) -> None:
        """Drop the gradients, before the next backward."""

    @abstractmethod
    def gradients(self) -> dict[str, Tensor]:
        """Whole gradients of the tensor rank's parts by Hugging Face name; all ranks ask."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """Whole weights of the tensor rank's parts by Hugging Face name; all ranks ask."""

    @property
    def keeper(self) -> int:
        """Whose place in the axis holds the `state` that this rank has too."""
        return self.axis.at

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
        """What a checkpoint of this rank keeps, as the tensors themselves: weights and moments."""

    @abstractmethod
    def ready(self, steps: int) -> None:
        """Make `state` hold all it does after so many updates, to be filled."""

    @abstractmethod
    def filled(self) -> None:
        """Once every rank has filled its `state`: take over from it what it does not hold."""

    @abstractmethod
    def held(self) -> Bytes:
        """Bytes of tensors that this rank holds now, counted."""


class Zero(Policy):
    """Concrete ones lie beside it, one a stage."""

    folder = "engine.training.parallel.zero"
    whole: ClassVar[bool] = True  # whether weights stay where they are from pass to pass

    @abstractmethod
    def trained(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> Trained:
        """`stages` made to learn on the ranks of `axis`, which hold the same weights."""

    @abstractmethod
    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        """What rank `at` of `ranks` holds between a backward and its update, of float32 parameters
        of these shapes."""


FLOAT = 4  # bytes
MOMENTS = 2


def local(tensor: Tensor) -> Tensor:
    """The part of a sharded tensor that is here; of a plain one the whole."""
    found: Tensor = getattr(tensor, "_local_tensor", tensor)
    return found.detach()


class LocalAdamW:
    """AdamW on the parts of parameters that are here.

    Of the project's own: torch's would load torch's compiler into every rank.
    """

    def __init__(self, named: Mapping[str, nn.Parameter], learning: Learning) -> None:
        self.named = named
        self.own = {}
        for name, parameter in named.items():
            here = local(parameter)
            decay = here.new_tensor(learning.weight_decay if parameter.ndim > 1 else 0.0)
            self.own[name] = FlatAdamW(
                decay.expand(here.shape),
                learning.beta1,
                learning.beta2,
                learning.eps,
            )

    def slopes(self) -> Iterator[tuple[str, Tensor]]:
        """Of each parameter the part of its gradient that is here."""
        for name, parameter in self.named.items():
            if parameter.grad is not None:
                yield name, local(parameter.grad)

    def step(self, rate: float) -> None:
        """From the parameters' gradients."""
        with torch.no_grad():
            for name, slope in self.slopes():
                self.own[name].update(local(self.named[name]), slope, rate)

    def moments(self) -> dict[str, Tensor]:
        """Both of each parameter, by name."""
        first = {f"momentum/{name}": own.momentum_P for name, own in self.own.items()}
        return first | {f"variance/{name}": own.variance_P for name, own in self.own.items()}

    def ready(self, steps: int) -> None:
        """Count on from so many updates."""
        for own in self.own.values():
            own.count = steps


class TrainedHere(Trained):
    """Stages each of whose parameters is updated where it is, or the part of it that is here."""

    optimizer: LocalAdamW

    def update(self, rate: float) -> None:
        self.optimizer.step(rate)

    def forget(self) -> None:
        for parameter in self.optimizer.named.values():
            parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        weights = {name: local(parameter) for name, parameter in self.named.items()}
        return weights | self.optimizer.moments()

    def ready(self, steps: int) -> None:
        self.optimizer.ready(steps)

    def filled(self) -> None:
        """Nothing: all that this rank holds is its state."""


def counted(tensors: Sequence[Tensor | None]) -> int:
    """Bytes of these, each storage once; of a sharded tensor the part that is here."""
    found: dict[int, int] = {}
    for tensor in tensors:
        if tensor is not None:
            storage = local(tensor).untyped_storage()
            found[storage._cdata] = storage.nbytes()
    return sum(found.values())


def numbers(shapes: Sequence[Sequence[int]]) -> int:
    """How many numbers tensors of these shapes hold."""
    return sum(torch.Size(shape).numel() for shape in shapes)
