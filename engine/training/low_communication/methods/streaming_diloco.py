"""DiLoCo a fragment at a time, beside training, in few bits."""

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from engine.core.config import Choice, knob
from engine.core.errors import BadInput
from engine.distributed.program import Compute, Program
from engine.hardware.collectives import all_reduce_bytes
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.four_bit import FourBit
from engine.training.low_communication.mean import ROUNDS, MeanOfAll
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.methods.diloco import Nesterov
from engine.training.low_communication.replica import Replica


class StreamingDiLoCo(Method):
    """Douillard et al., arXiv 2501.18512.

    Fragment f sends its outer gradient every H steps at its own time; `delay` steps later the outer
    step is taken and mixed into weights that have moved on. Fragments are equal cuts of the flat
    vector where the paper takes strided groups of layers.
    """

    kind: Literal["streaming_diloco"] = "streaming_diloco"
    every: int = knob(16, "steps between two syncs of a fragment (H)", low=1, high=10_000,
                      unit="steps", called="Inner steps (H)")  # fmt: skip
    fragments: int = knob(16, "parts that sync in turn", low=1, high=256)
    delay: int = knob(2, "steps from sending to applying (tau)", low=0, high=1000, unit="steps")
    mix: float = knob(0.5, "share of the local weights kept when applying (alpha)", low=0.0,
                      high=1.0)  # fmt: skip
    outer_rate: float = knob(0.7, "outer learning rate", low=0.0, high=2.0)
    momentum: float = knob(0.5, "outer Nesterov momentum", low=0.0, high=0.99)
    codec: Choice[Codec] = knob(make=FourBit, doc="outer gradients on the wire")

    fault: Literal["none", "all_at_once", "late", "waits", "shifted"] = knob(
        "none", "What goes wrong: fragments do not take turns, are applied a step late, are waited "
        "for when sent, or land one place off", group="faults",
    )  # fmt: skip

    def loop(self, replica: Replica) -> "StreamingLoop":
        if self.delay >= self.every:
            raise BadInput(
                f"streaming_diloco: delay {self.delay} is not below every {self.every}; "
                "a fragment would be sent again before it has arrived"
            )
        return StreamingLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        part = self.codec.bytes(-(-parameters // self.fragments))
        size, hidden = all_reduce_bytes(replicas, part), self.delay
        if self.fault == "waits":
            hidden = 0
        if self.fault == "all_at_once":
            return Traffic(size * self.fragments, self.every, hidden, ROUNDS)
        return Traffic(size, self.every / self.fragments, hidden, ROUNDS)


@dataclass
class _Flight:
    """A fragment under way."""

    fragment: int
    sent: int
    mean: MeanOfAll
    found: Tensor | None = None  # the mean, where it was waited for at once


class StreamingLoop:
    def __init__(self, method: StreamingDiLoCo, replica: Replica) -> None:
        self.method, self.replica = method, replica
        self.outer = [
            Nesterov(part, method.outer_rate, method.momentum) for part in self._fragments()
        ]
        self.flights: list[_Flight] = []

    def step(self, step: int, rate: float) -> Program[None]:
        yield from self.replica.stepped(step, rate)
        for fragment in range(self.method.fragments):
            if self.due(fragment, step):
                yield from self._depart(fragment, step)
        for flight in list(self.flights):
            if step - flight.sent == self.method.delay // 2 and not flight.mean.shared:
                yield from flight.mean.share()
            if step - flight.sent == self.method.delay + (self.method.fault == "late"):
                yield from self._apply(flight)

    def due(self, fragment: int, step: int) -> bool:
        """Whether the fragment is sent after this step: they are spread evenly over H steps."""
        every = self.method.every
        if self.method.fault == "all_at_once":
            return (step + 1) % every == 0
        return (step + 1 + fragment * every // self.method.fragments) % every == 0

    def finish(self) -> Program[None]:
        for flight in list(self.flights):
            if not flight.mean.shared:
                yield from flight.mean.share()
            yield from self._apply(flight)

    def _fragments(self) -> tuple[Tensor, ...]:
        return self.replica.weights_P.tensor_split(self.method.fragments)

    def _depart(self, fragment: int, step: int) -> Program[None]:
        mean = MeanOfAll(self.replica, self.method.codec, f"fragment-{fragment}/{step}")
        gone = self.outer[fragment].weights_P - self._fragments()[fragment]
        flight = _Flight(fragment, step, mean)
        self.flights.append(flight)
        yield from mean.scatter(gone)
        if self.method.fault == "waits":
            yield from mean.share()
            flight.found = yield from mean.take()

    def _apply(self, flight: _Flight) -> Program[None]:
        mean = flight.found
        if mean is None:
            mean = yield from flight.mean.take()
        self.flights.remove(flight)

        def work() -> None:
            agreed = self.outer[flight.fragment].step(mean)
            if self.method.fault == "shifted":
                agreed = agreed.roll(1)
            self._fragments()[flight.fragment].lerp_(agreed, 1 - self.method.mix)

        yield Compute("outer step", work, task=f"fragment-{flight.fragment}/{flight.sent}")
