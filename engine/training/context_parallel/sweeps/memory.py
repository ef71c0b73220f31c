"""The longest sequence and the largest batch that fit a rank's memory, over the number of ranks."""

from typing import TYPE_CHECKING, ClassVar, Literal

from engine.core.config import knob, update
from engine.core.plot import Plot
from engine.core.run import Live
from engine.training.context_parallel.room import longest
from engine.training.context_parallel.sweep import Sweep

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig

LENGTH = Plot("longest sequence", "ranks", "tokens", log_x=True, log_y=True)
BATCH = Plot("largest batch", "ranks", "sequences", log_x=True, log_y=True)
KINDS = ("ring_self_attention", "ring", "gathered")


class Memory(Sweep):
    """Bytes are counted on shapes, forward and backward, in float32."""

    kind: Literal["memory"] = knob("memory", doc="what fits as ranks are added")
    room: float = knob(2.0**28, "bytes of tensors a rank may hold", low=2.0**16, high=2.0**40,
                       unit="B", log=True)  # fmt: skip
    most: int = knob(4, "ranks at most, doubled from one", low=1, high=64)

    plots: ClassVar = (LENGTH, BATCH)

    def draw(self, config: "SequenceConfig", live: Live) -> None:
        ranks = [2**n for n in range(self.most.bit_length()) if 2**n <= self.most]
        for plot, name in ((LENGTH, "tokens"), (BATCH, "batch")):
            for kind in KINDS:
                plain = update(config, {"attention": kind, "dropped": -1, "causal": False})
                found = []
                for count in ranks:
                    live.poll(live.log.duration)
                    # A batch is counted at a length that every number of ranks divides.
                    tokens = 1024 if name == "batch" else 2 * count
                    sized = update(plain, {"ranks": count, "tokens": tokens, "batch": 1})
                    found.append(float(longest(sized, self.room, name)))
                points = list(zip(ranks, found, strict=True))
                live.curve(live.log.duration, plot, kind, points)
