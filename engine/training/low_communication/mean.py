"""Mean of all replicas' vectors by a two-phase all-reduce, packed by a codec in both rounds.

Each replica is in charge of a share: all send it their part of that share, and it sends the mean to
all. With numbers as they are this moves 2 (n - 1) / n of the vector from each replica, as a ring
does. The rounds are steps of their own, so training can go on between them.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from engine.distributed.program import Wait
from engine.training.low_communication.codec import Codec
from engine.training.low_communication.replica import Replica

Steps = Generator[Any, Any, None]
ROUNDS = 2  # messages of a mean that follow one another


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


class MeanOfAll:
    """One averaging under way; call `scatter`, `share`, `take` in this order."""

    def __init__(
        self, replica: Replica, codec: Codec, task: str, kept: Feedback | None = None
    ) -> None:
        self.replica, self.codec, self.task, self.kept = replica, codec, task, kept
        self.rank, self.ranks = replica.place.rank, replica.place.ranks
        self.others = [rank for rank in range(self.ranks) if rank != self.rank]
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
        packed = [self.codec.pack(share) for share in shares]
        seen = [self.codec.unpack(p, n) for p, n in zip(packed, self.sizes, strict=True)]
        if self.kept is not None:
            self.kept.worker_P = x_P - torch.cat(seen)
        self.own_S = seen[self.rank]
        size = self.codec.bytes(self.sizes[self.rank])
        yield from self._post(dict.fromkeys(self.others, size), "shares")
        for rank in self.others:
            yield self.replica.send(rank, packed[rank], f"{self.task}/shares")

    def share(self) -> Steps:
        """Take the others' parts of the own share and send all its mean."""
        self.shared = True
        count = self.sizes[self.rank]
        parts = {self.rank: self.own_S}
        for rank in self.others:
            (packed,) = yield Wait(self.tickets[rank])
            parts[rank] = self.codec.unpack(packed, count)
        # In order of rank, so that sums do not depend on who came first.
        mean_S = torch.stack([parts[rank] for rank in range(self.ranks)]).mean(0)
        if self.kept is not None:
            mean_S = mean_S + self.kept.server_S
        packed = self.codec.pack(mean_S)
        self.own_S = self.codec.unpack(packed, count)
        if self.kept is not None:
            self.kept.server_S = mean_S - self.own_S
        sizes = {rank: self.codec.bytes(self.sizes[rank]) for rank in self.others}
        yield from self._post(sizes, "means")
        for rank in self.others:
            yield self.replica.send(rank, packed, f"{self.task}/means")

    def take(self) -> Generator[Any, Any, Tensor]:
        """The mean, bit for bit the same on every replica."""
        parts = {self.rank: self.own_S}
        for rank in self.others:
            (packed,) = yield Wait(self.tickets[rank])
            parts[rank] = self.codec.unpack(packed, self.sizes[rank])
        return torch.cat([parts[rank] for rank in range(self.ranks)])

    def _post(self, sizes: dict[int, int], round: str) -> Steps:
        for rank, size in sizes.items():
            self.tickets[rank] = yield self.replica.receive(rank, size, f"{self.task}/{round}")


def mean_of_all(
    replica: Replica, codec: Codec, x_P: Tensor, task: str, kept: Feedback | None = None
) -> Generator[Any, Any, Tensor]:
    """The mean at once; the replica waits for it."""
    under_way = MeanOfAll(replica, codec, task, kept)
    yield from under_way.scatter(x_P)
    yield from under_way.share()
    return (yield from under_way.take())
