"""Stage cost: seconds of a pipeline rank's passes and bytes that its share of the model takes."""

from abc import abstractmethod
from dataclasses import dataclass

from engine.core.config import Policy


@dataclass(frozen=True)
class Traffic:
    """What the devices of one rank give one another in a pass of all its layers.

    `tensor`, `context`: bytes that each device sends on to the next one of its tensor and of its
    context ranks; nothing is computed beside the first, `beside` seconds of the pass beside the
    second. `seconds`: by how much both make the pass longer with links of their own.
    """

    tensor: float = 0.0
    context: float = 0.0
    beside: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Share:
    """One rank's layers and one microbatch. Seconds, bytes and flops.

    `kept`: the share of the activations that stays after the backward for the input. `head`: more
    seconds of (F, I, W) on the last stage, for the logits and the loss. `reduce`, `update`: the
    all-reduce of all the rank's gradients over its replicas, and the optimiser. `sent`: how much of
    `forward` and of `backward_input` is the boundary's way over the network; `within`: what of each
    of the two is traffic among the rank's own devices. `stages`: seconds of F, I and W of each
    stage in order, where they are not alike. `awaited`: passes contain all of the boundary's way.
    """

    forward: float
    backward_input: float
    backward_weight: float
    head: tuple[float, float, float] = (0.0, 0.0, 0.0)
    reduce: float = 0.0
    update: float = 0.0
    boundary: float = 0.0
    sent: float = 0.0
    awaited: bool = False
    stages: tuple[tuple[float, ...], ...] = ()
    within: tuple[Traffic, Traffic] = (Traffic(), Traffic())
    activations: float = 0.0
    kept: float = 1.0
    weights: float = 0.0
    gradients: float = 0.0
    optimiser: float = 0.0
    forward_flops: float = 0.0
    backward_flops: float = 0.0  # of both halves


class StageCost(Policy):
    """Tells a rank's share; concrete ones lie one to a file in `stage_costs`."""

    folder = "engine.training.pipeline.stage_costs"

    def replicas(self, ranks: int) -> int:
        """Data-parallel replicas of a pipeline of `ranks` ranks."""
        return 1

    @property
    def devices(self) -> tuple[int, int]:
        """(context, tensor): devices that a rank stands on."""
        return 1, 1

    @property
    def capacity(self) -> float:
        """Memory of each of them in bytes; 0 where it is not said."""
        return 0.0

    @abstractmethod
    def share(self, ranks: int, chunks: int) -> Share:
        """The cost of the share of one of `ranks` ranks, each with `chunks` chunks of layers.

        Raises BadInput where the model does not divide.
        """
