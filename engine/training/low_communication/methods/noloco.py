"""Outer steps between random pairs: no replica ever waits for all."""

from collections.abc import Generator
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from engine.core.config import Choice, knob
from engine.distributed.program import Compute, Program, Wait
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.codecs.float32 import Float32
from engine.training.low_communication.method import Method, Traffic
from engine.training.low_communication.replica import Place, Replica


class NoLoCo(Method):
    """NoLoCo's outer step with its modified Nesterov momentum, groups of two.

    momentum ← μ · momentum + β · mean(change) + γ · (mean(outer) - outer), means over the pair. The
    outer weights are known a round ahead and travel beside the inner steps; only changes are
    waited for. The paper's own β, μ and H: datasets/low_communication.toml.
    """

    kind: Literal["noloco"] = "noloco"
    every: int = knob(
        8,
        "steps between outer steps (H)",
        low=1,
        high=10_000,
        unit="steps",
        called="Inner steps (H)",
    )
    outer_rate: float = knob(0.7, "share of the mean change taken (beta)", low=0.0, high=2.0)
    momentum: float = knob(0.5, "outer momentum (mu)", low=0.0, high=0.99)
    pull: float = knob(1.0, "towards the partner's outer weights (gamma)", low=0.0, high=2.0)
    group: int = knob(2, "replicas that meet; 1: each stays alone", low=1, high=2)
    codec: Choice[Codec] = knob(make=Float32, doc="weights and changes on the wire")
    fault: Literal["none", "same_pairs", "shifted", "barrier"] = knob(
        "none", "What goes wrong: pairs are drawn once for all, a partner's numbers land one place "
        "off, or a pair waits until all pairs have met", group="faults",
    )  # fmt: skip

    def loop(self, replica: Replica) -> "NoLoCoLoop":
        return NoLoCoLoop(self, replica)

    def traffic(self, parameters: int, replicas: int) -> Traffic:
        # The outer weights travel beside the inner steps; the changes are waited for.
        size = self.codec.bytes(parameters)
        return Traffic(size, self.every, 0, 1, beside=size)


def drawn(seed: int, ranks: int, round: int) -> np.ndarray:
    """The order of all replicas whose neighbours meet in this round, the same for all of them."""
    return np.random.default_rng((seed, round)).permutation(ranks)


def partner(place: Place, round: int) -> int:
    """Whom this replica meets: its neighbour in the order drawn; -1 for the odd one."""
    order = drawn(place.seed, place.ranks, round)
    at = int(np.flatnonzero(order == place.rank)[0])
    other = at ^ 1
    return int(order[other]) if other < place.ranks else -1


class NoLoCoLoop:
    def __init__(self, method: NoLoCo, replica: Replica) -> None:
        self.method, self.replica = method, replica
        self.outer_P = replica.weights_P.clone()
        self.velocity_P = torch.zeros_like(self.outer_P)
        self.ticket: Any = None

    def step(self, step: int, rate: float) -> Program[None]:
        round, within = divmod(step, self.method.every)
        meeting = 0 if self.method.fault == "same_pairs" else round
        other = partner(self.replica.place, meeting) if self.method.group == 2 else -1
        if within == 0 and other >= 0:
            self.ticket = yield from self._swap(other, self.outer_P, f"outer/{step}")
        yield from self.replica.stepped(step, rate)
        if within == self.method.every - 1:
            yield from self._meet(other, step)

    def finish(self) -> Program[None]:
        if self.ticket is not None:
            yield Wait(self.ticket)

    def _meet(self, other: int, step: int) -> Program[None]:
        change_P = self.replica.weights_P - self.outer_P
        theirs_P, their_outer_P = change_P, self.outer_P
        if other >= 0:
            ticket = yield from self._swap(other, change_P, f"change/{step}")
            their_outer_P = yield from self._taken(self.ticket)
            self.ticket = None
            theirs_P = yield from self._taken(ticket)
        if self.method.fault == "barrier":
            yield from self._all_here(step)

        def work() -> None:
            method = self.method
            self.velocity_P.mul_(method.momentum)
            self.velocity_P.add_(change_P + theirs_P, alpha=method.outer_rate / 2)
            self.velocity_P.add_(their_outer_P - self.outer_P, alpha=method.pull / 2)
            self.outer_P.add_(self.velocity_P)
            self.replica.weights_P.copy_(self.outer_P)

        yield Compute("outer step", work, task=f"pair/{step}")

    def _taken(self, ticket: Any) -> Generator[Any, Any, Tensor]:
        """What the partner sent, unpacked."""
        (packed,) = yield Wait(ticket)
        theirs_P = self.method.codec.unpack(packed, len(self.outer_P))
        return theirs_P.roll(1) if self.method.fault == "shifted" else theirs_P

    def _all_here(self, step: int) -> Program[None]:
        """A byte to every other replica, and one from each."""
        place, task = self.replica.place, f"barrier/{step}"
        others = [rank for rank in range(place.ranks) if rank != place.rank]
        tickets = []
        for rank in others:
            tickets.append((yield self.replica.receive(rank, 1, task)))
            yield self.replica.send(rank, torch.zeros(1, dtype=torch.uint8), task)
        for ticket in tickets:
            yield Wait(ticket)

    def _swap(self, other: int, x_P: Tensor, task: str) -> Generator[Any, Any, Any]:
        """Send `x_P`; the ticket of what comes back."""
        size = self.method.codec.bytes(len(x_P))
        ticket = yield self.replica.receive(other, size, task)
        yield self.replica.send(other, self.method.codec.pack(x_P), task)
        return ticket
