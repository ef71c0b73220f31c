"""ZeRO stage 3: weights too are sharded; each layer gathers them for forward and for backward."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from engine.core.config import knob
from engine.distributed.axis import Axis
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.zero.fully_sharded import FullySharded, share
from engine.training.parallel.zero.zero import Bytes, Learning, Trained, Zero


class Weights(Zero):
    """FSDP2 that reshards after forward."""

    kind: Literal["weights"] = knob("weights", doc="ZeRO-3: weights too are dealt")
    whole: ClassVar[bool] = False

    def trained(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> Trained:
        return FullySharded(stages, axis, learning, again=True)

    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        return share(shapes, ranks, at)
