"""MeanOfAll: the two-phase all-reduce of all replicas' vectors, packed by a codec in both rounds.

Who sends which share to whom is the collective's own plan of transfers. What is added here is what
a plan of pieces cannot say: shares are packed, what packing loses is told the next time, and the
rounds are steps of their own, so that training can go on between them.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

from engine.distributed.collective import Transfer
from engine.distributed.collectives.two_phase import TwoPhase
from engine.distributed.program import Wait
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.replica import Replica

Steps = Generator[Any, Any, None]
NAMES = ("shares", "means")  # of what travels in each round
ROUNDS = len(NAMES)  # messages of a mean that follow one another


@dataclass
class Feedback:
    """What packing lost and has yet to be told: of the own vector [P] and of the own share's mean
    (1-bit Adam, arXiv 2102.02888, algorithm 1)."""

    worker_P: Tensor
    server_S: Tensor


def feedback(replica: Replica) -> Feedback:
    """Nothing lost yet."""
    zeros_P = torch.zeros_like(replica.weights_P)
    shares = zeros_P.tensor_split(replica.place.ranks)
    return Feedback(zeros_P, shares[replica.place.rank].clone())


@cache
def _rounds(ranks: int) -> list[list[Transfer]]:
    """Who sends which share to whom, in order of rank, so that sums do not depend on who came
    first; nobody where there is one replica."""
    plan = TwoPhase().transfers(ranks, ranks)
    return [sorted(round) for round in plan.rounds] or [[]] * ROUNDS


class MeanOfAll:
    """One averaging under way; call `scatter`, `share`, `take` in this order."""

    def __init__(
        self, replica: Replica, codec: Codec, task: str, kept: Feedback | None = None
    ) -> None:
        self.replica, self.codec, self.task, self.kept = replica, codec, task, kept
        self.rank, self.ranks = replica.place.rank, replica.place.ranks
        self.rounds = _rounds(self.ranks)
        self.sizes: list[int] = []
        self.own_S = torch.zeros(0)
        self.tickets: dict[int, Any] = {}
        self.shared = False

    def scatter(self, x_P: Tensor) -> Steps:
        """Send each replica its share of this vector."""
        if self.kept is not None:
            x_P = x_P + self.kept.worker_P
        shares = x_P.tensor_split(self.ranks)
        self.sizes = [len(share) for share in shares]
        packed = {place: self.codec.pack(share) for place, share in enumerate(shares)}
        seen = [self.codec.unpack(packed[place], n) for place, n in enumerate(self.sizes)]
        if self.kept is not None:
            self.kept.worker_P = x_P - torch.cat(seen)
        self.own_S = seen[self.rank]
        yield from self._exchange(0, packed)

    def share(self) -> Steps:
        """Take the others' parts of the own share and send all its mean."""
        self.shared = True
        count = self.sizes[self.rank]
        parts = {self.rank: self.own_S}
        for each in self._coming(0):
            (packed,) = yield Wait(self.tickets[each.source])
            parts[each.source] = self.codec.unpack(packed, count)
        mean_S = torch.stack([parts[rank] for rank in range(self.ranks)]).mean(0)
        if self.kept is not None:
            mean_S = mean_S + self.kept.server_S
        packed = self.codec.pack(mean_S)
        self.own_S = self.codec.unpack(packed, count)
        if self.kept is not None:
            self.kept.server_S = mean_S - self.own_S
        yield from self._exchange(1, {self.rank: packed})

    def take(self) -> Generator[Any, Any, Tensor]:
        """The mean, bit for bit the same on every replica."""
        parts = {self.rank: self.own_S}
        for each in self._coming(1):
            (packed,) = yield Wait(self.tickets[each.source])
            parts[each.first] = self.codec.unpack(packed, self.sizes[each.first])
        return torch.cat([parts[rank] for rank in range(self.ranks)])

    def _coming(self, round: int) -> list[Transfer]:
        """What this replica is sent in a round."""
        return [each for each in self.rounds[round] if each.target == self.rank]

    def _exchange(self, round: int, packed: Mapping[int, Tensor]) -> Steps:
        """Make room for what comes in a round and send what goes: packed shares by their number."""
        task = f"{self.task}/{NAMES[round]}"
        for each in self._coming(round):
            size = self.codec.bytes(self.sizes[each.first])
            self.tickets[each.source] = yield self.replica.receive(each.source, size, task)
        for each in self.rounds[round]:
            if each.source == self.rank:
                yield self.replica.send(each.target, packed[each.first], task)


def mean_of_all(
    replica: Replica, codec: Codec, x_P: Tensor, task: str, kept: Feedback | None = None
) -> Generator[Any, Any, Tensor]:
    """The mean at once; the replica waits for it."""
    under_way = MeanOfAll(replica, codec, task, kept)
    yield from under_way.scatter(x_P)
    yield from under_way.share()
    return (yield from under_way.take())
