"""Data parallelism among replicas of which some forge what they send."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from engine.core.config import Choice, knob
from engine.core.errors import BadInput
from engine.distributed.program import Compute, Program, Wait
from engine.training.low_communication.aggregator import Aggregator
from engine.training.low_communication.aggregators.median import Median
from engine.training.low_communication.attack import Attack, forge
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float32 import Float32
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.replica import Replica


class Robust(Method):
    """AdamW on a robust aggregate of all gradients, which everybody sends to everybody.

    The last replicas are the attackers; they wait for all honest gradients before they send, and
    send the same to all.
    """

    kind: Literal["robust"] = "robust"
    aggregator: Choice[Aggregator] = knob(make=Median, doc="one gradient from all")
    attackers: int = knob(0, "replicas that forge what they send", low=0, high=63)
    attack: Attack = knob("sign_flip", "what attackers send")
    scale: float = knob(10.0, "size of a forged gradient, in honest ones", low=0.0, high=1e6)
    codec: Choice[Codec] = knob(make=Float32, doc="gradients on the wire")

    def loop(self, replica: Replica) -> "RobustLoop":
        if self.attackers >= replica.place.ranks:
            raise BadInput(
                f"attackers: {self.attackers} of {replica.place.ranks}; leave one honest"
            )
        return RobustLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        return Traffic((replicas - 1) * self.codec.bytes(parameters), 1, 0, 1)


@dataclass
class RobustLoop:
    method: Robust
    replica: Replica

    def step(self, step: int, rate: float) -> Program[None]:
        replica, method = self.replica, self.method
        yield from replica.computed(step)
        sent_NP = yield from self._exchange(step)

        def work() -> None:
            found_P = method.aggregator.combine(sent_NP, method.attackers)
            replica.adamw.update(replica.weights_P, found_P, rate)

        yield Compute("update", work)

    def finish(self) -> Program[None]:
        yield from ()

    def _exchange(self, step: int) -> Generator[Any, Any, Tensor]:
        """What all replicas sent, [N, P], the same everywhere."""
        replica, codec, place = self.replica, self.method.codec, self.replica.place
        task, count = f"gradient/{step}", len(replica.weights_P)
        honest = range(place.ranks - self.method.attackers)
        others = [rank for rank in range(place.ranks) if rank != place.rank]
        tickets = {}
        for rank in others:
            tickets[rank] = yield replica.receive(rank, codec.bytes(count), task)
        seen: dict[int, Tensor] = {}

        def take(rank: int) -> Generator[Any, Any, None]:
            (packed,) = yield Wait(tickets[rank])
            seen[rank] = codec.unpack(packed, count)

        own_P = replica.gradient_P
        if place.rank not in honest:
            for rank in honest:
                yield from take(rank)
            seed = place.seed * 1009 + step * place.ranks + place.rank
            own_P = forge(
                self.method.attack, torch.stack(list(seen.values())), self.method.scale, seed
            )
        packed = codec.pack(own_P)
        for rank in others:
            yield replica.send(rank, packed, task)
        for rank in others:
            if rank not in seen:
                yield from take(rank)
        seen[place.rank] = codec.unpack(packed, count)
        return torch.stack([seen[rank] for rank in range(place.ranks)])
