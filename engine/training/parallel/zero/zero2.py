"""ZeRO stage 2: gradients and moments are sharded; weights once gathered stay through backward."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from engine.core.config import knob
from engine.distributed.axis import Axis
from engine.training.parallel.tensor.model import ShardedStage
from engine.training.parallel.zero.fully_sharded import FullySharded, share
from engine.training.parallel.zero.zero import Bytes, Learning, Trained, Zero


class Gradients(Zero):
    """FSDP2 that does not reshard after forward."""

    kind: Literal["gradients"] = knob("gradients", doc="ZeRO-2: gradients too are dealt")
    whole: ClassVar[bool] = False

    def trained(self, stages: Sequence[ShardedStage], axis: Axis, learning: Learning) -> Trained:
        return FullySharded(stages, axis, learning, again=False)

    def formula(self, shapes: Sequence[Sequence[int]], ranks: int, at: int) -> Bytes:
        return share(shapes, ranks, at)
