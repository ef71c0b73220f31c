"""Sweeps: curves drawn beside a split attention's run, of the same attention at other sizes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

from engine.core.config import Policy, knob, update
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.core.log import Log
from engine.core.plot import Plot
from engine.core.run import Live
from engine.distributed.exposed_communication import exposed
from engine.training.context_parallel.executor import AttentionExecutor
from engine.training.context_parallel.executors.modelled import Modelled
from engine.training.context_parallel.memory_fit import longest
from engine.training.context_parallel.split_attention import SplitAttention

LENGTH = Plot("longest sequence", "ranks", "tokens", log_x=True, log_y=True)
BATCH = Plot("largest batch", "ranks", "sequences", log_x=True, log_y=True)
WAITING = Plot("time spent waiting", "link bandwidth (B/s)", "share of the time", log_x=True)
FITTING = ("ring_self_attention", "ring", "gathered")
TRAVELLING = ("ring", "token_ring", "all_to_all")
POINTS = (3e9, 1e10, 3e10, 1e11, 3e11, 9e11)  # B/s


class Sweep(Policy):
    """What is varied."""

    folder = "engine.training.context_parallel.sweeps"

    plots: ClassVar[Sequence[Plot]] = ()  # the panels that it draws

    @abstractmethod
    def draw(self, asked: SplitAttention, executor: AttentionExecutor, live: Live) -> None:
        """Emit the curves."""


class Nothing(Sweep):
    """The run alone."""

    kind: Literal["nothing"] = knob("nothing", doc="no curves")

    def draw(self, asked: SplitAttention, executor: AttentionExecutor, live: Live) -> None:
        return


class Memory(Sweep):
    """What fits a rank's memory over the number of ranks: bytes are counted on shapes, forward and
    backward, in float32."""

    kind: Literal["memory"] = knob("memory", doc="what fits as ranks are added")
    room: float = knob(2.0**28, "bytes of tensors a rank may hold", low=2.0**16, high=2.0**40,
                       unit="B", log=True)  # fmt: skip
    most: int = knob(4, "ranks at most, doubled from one", low=1, high=64)

    plots: ClassVar = (LENGTH, BATCH)

    def draw(self, asked: SplitAttention, executor: AttentionExecutor, live: Live) -> None:
        ranks = [2**n for n in range(self.most.bit_length()) if 2**n <= self.most]
        for plot, name in ((LENGTH, "tokens"), (BATCH, "batch")):
            for kind in FITTING:
                plain = update(asked, {"attention": kind, "dropped": -1, "causal": False})
                points = []
                for count in ranks:
                    live.poll(live.log.duration)
                    # A batch is counted at a length that every number of ranks divides.
                    tokens = 1024 if name == "batch" else 2 * count
                    sized = update(plain, {"ranks": count, "tokens": tokens, "batch": 1})
                    points.append((count, longest(sized, self.room, name)))
                live.curve(live.log.duration, plot, kind, points)


class Waiting(Sweep):
    """Communication that work does not hide, over the speed of a link, for each way to split:
    modelled on the devices of the run, or on the default ones beside real ranks."""

    kind: Literal["waiting"] = knob("waiting", doc="exposed communication over link speed")

    plots: ClassVar = (WAITING,)

    def draw(self, asked: SplitAttention, executor: AttentionExecutor, live: Live) -> None:
        modelled = executor if isinstance(executor, Modelled) else Modelled()
        wire = modelled.wire()
        for kind in TRAVELLING:
            try:
                plain = update(asked, {"attention": kind, "dropped": -1})
            except BadInput:  # heads that do not divide by the ranks
                continue
            live.poll(live.log.duration)
            wires = [wire.model_copy(update={"bandwidth": speed}) for speed in POINTS]
            shares = [share(events) for events in modelled.over(plain, wires)]
            points = list(zip(POINTS, shares, strict=True))
            live.curve(live.log.duration, WAITING, kind, points, modelled=True)


def share(events: list[AnyEvent]) -> float:
    """The longest wait of any rank, as a part of all the time."""
    end = max(event.time for event in events)
    return max(exposed(Log(events)).values()) / end
