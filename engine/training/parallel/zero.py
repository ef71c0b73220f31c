"""Which of a replica's states are dealt to replicas: ZeRO's stages (arXiv 1910.02054, section 5).

A stage wraps a rank's model and optimiser; gradients and weights come back whole for comparison.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from engine.core.config import Config, Policy, knob
from engine.distributed.axis import Axis
from engine.training.parallel.model import ShardedStage


class Learning(Config):
    """AdamW (arXiv 1711.05101), which decays matrices only."""

    rate: float = knob(1e-3, "learning rate", low=0.0, high=1.0)
    beta1: float = knob(0.9, "memory of gradients", low=0.0, high=0.999)
    beta2: float = knob(0.95, "memory of squared gradients", low=0.0, high=0.9999)
    weight_decay: float = knob(0.1, "decay of matrices", low=0.0, high=1.0)


class Bytes(NamedTuple):
    """What a rank holds of a model's states. The optimiser's are its two moments."""

    weights: int
    gradients: int
    optimiser: int


class Trained(ABC):
    """A rank's model while it learns. Gradients are sums over `axis`: the loss is divided by all
    tokens before backward."""

    def __init__(self, stage: ShardedStage, axis: Axis, learning: Learning) -> None:
        self.stage, self.axis, self.learning = stage, axis, learning

    @abstractmethod
    def finish(self) -> None:
        """After backward: until the gradients this rank needs are sums over the axis."""

    @abstractmethod
    def update(self) -> None:
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

    @abstractmethod
    def held(self) -> Bytes:
        """Bytes of tensors that this rank holds now, counted."""


class Zero(Policy):
    """Concrete ones lie one to a file in `zeros`."""

    folder = "engine.training.parallel.zeros"

    @abstractmethod
    def trained(self, stage: ShardedStage, axis: Axis, learning: Learning) -> Trained:
        """`stage` made to learn on the ranks of `axis`, which hold the same weights."""

    @abstractmethod
    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        """What rank `at` of `ranks` holds between a backward and its update, of float32 parameters
        of these shapes."""


FLOAT = 4  # bytes
MOMENTS = 2


def adamw(parameters: Mapping[str, nn.Parameter], learning: Learning) -> torch.optim.AdamW:
    """torch's own over these parameters."""
    matrices = [p for p in parameters.values() if p.ndim > 1]
    vectors = [p for p in parameters.values() if p.ndim <= 1]
    groups = [
        {"params": matrices, "weight_decay": learning.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning.rate, betas=(learning.beta1, learning.beta2))


def counted(tensors: Sequence[Tensor | None]) -> int:
    """Bytes of these, each storage once; of a sharded tensor the part that is here."""
    found: dict[int, int] = {}
    for tensor in tensors:
        if tensor is not None:
            local = getattr(tensor, "_local_tensor", tensor)
            storage = local.untyped_storage()
            found[storage._cdata] = storage.nbytes()
    return sum(found.values())


def moments(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """The tensors an optimiser keeps, without its counters."""
    return [
        value
        for state in optimizer.state.values()
        for value in state.values()
        if isinstance(value, Tensor) and value.ndim > 0
    ]


def numbers(shapes: Sequence[Sequence[int]]) -> int:
    """How many numbers tensors of these shapes hold."""
    return sum(torch.Size(shape).numel() for shape in shapes)
