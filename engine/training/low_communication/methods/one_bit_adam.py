"""Adam whose variance stands still after a while, so that momentum can travel in one bit."""

from typing import Literal

from engine.core.config import Choice, knob
from engine.distributed.program import Compute, Program
from engine.hardware.collectives import all_reduce_bytes
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float16 import Float16
from engine.training.low_communication.codecs.one_bit import OneBit
from engine.training.low_communication.mean import ROUNDS, Feedback, feedback, mean_of_all
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.replica import Replica


class OneBitAdam(Method):
    """Tang et al., arXiv 2102.02888, algorithm 1.

    For `exact` steps plain Adam; then the variance is frozen, and each replica's momentum is sent
    as signs and scales, what that loses being added to the next one: at the sender and at the
    replica that averages.
    """

    kind: Literal["one_bit_adam"] = "one_bit_adam"
    exact: int = knob(
        20,
        "steps before the variance is frozen",
        low=1,
        high=100_000,
        unit="steps",
        called="Full-precision steps",
    )
    compensate: bool = knob(True, "what packing lost is added to the next momentum")
    codec: Choice[Codec] = knob(make=OneBit, doc="momentum on the wire")
    exact_codec: Choice[Codec] = knob(make=Float16, doc="gradients on the wire until then")

    fault: Literal["none", "shifted", "negated", "gradients_too"] = knob(
        "none", "What goes wrong: what packing lost is added one place off, or is taken away, or "
        "gradients go on travelling beside the momentum", group="faults",
    )  # fmt: skip

    def loop(self, replica: Replica) -> "OneBitLoop":
        return OneBitLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        """After the variance is frozen."""
        size = all_reduce_bytes(replicas, self.codec.bytes(parameters))
        return Traffic(size, 1, 0, ROUNDS)


class OneBitLoop:
    def __init__(self, method: OneBitAdam, replica: Replica) -> None:
        self.method, self.replica = method, replica
        self.kept: Feedback | None = feedback(replica) if method.compensate else None

    def step(self, step: int, rate: float) -> Program[None]:
        replica, adamw = self.replica, self.replica.adamw
        yield from replica.computed(step)
        if step < self.method.exact:
            codec, task = self.method.exact_codec, f"gradient/{step}"
            mean_P = yield from mean_of_all(replica, codec, replica.gradient_P, task)
            yield Compute("update", lambda: adamw.update(replica.weights_P, mean_P, rate))
            return
        if adamw.frozen_P is None:
            adamw.freeze()
        ahead_P = adamw.momentum_P.lerp(replica.gradient_P, 1 - adamw.beta1)
        task = f"momentum/{step}"
        mean_P = yield from mean_of_all(replica, self.method.codec, ahead_P, task, self.kept)
        if self.method.fault == "shifted" and self.kept is not None:
            self.kept.worker_P = self.kept.worker_P.roll(1)
        if self.method.fault == "negated" and self.kept is not None:
            self.kept.worker_P = -self.kept.worker_P
        if self.method.fault == "gradients_too":
            codec = self.method.exact_codec
            yield from mean_of_all(replica, codec, replica.gradient_P, f"gradient/{step}")

        def work() -> None:
            adamw.momentum_P = mean_P
            adamw.count += 1
            adamw.move(replica.weights_P, rate)

        yield Compute("update", work)

    def finish(self) -> Program[None]:
        yield from ()
