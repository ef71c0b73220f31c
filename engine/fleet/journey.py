"""Journey: one request on its way through a fleet, and how those of a dead replica recover."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engine.fleet.life import Life
from engine.fleet.pools.pools import Place
from engine.fleet.replica import Replica
from engine.fleet.routers.router import Asked
from engine.inference.requests.request import Request


@dataclass(slots=True, eq=False)
class Journey:
    """A request on its way through the fleet."""

    asked: Request  # as it arrived
    number: int  # order of arrival
    row: Life
    known: np.ndarray  # prompt and answer so far, as it was last given to a replica
    key: int = 0  # the hash of its beginning that its router knows it by
    where: str = "router"  # "fetch", "prefill", "link", "decode" (or both phases), "over"
    place: Place = Place(-1, -1)
    sent: np.ndarray | None = None  # pages at the prefilling replica, held until they are sent
    kept: np.ndarray | None = None  # pages reserved at the decoding replica
    kept_at: float = 0.0
    fetched: np.ndarray | None = None  # pages at the prefilling replica, for what a pool sends
    begun_at: float = 0.0  # when its prompt entered
    tries: int = 0  # places it was given to; what was planned before the last means nothing

    @property
    def left(self) -> int:
        """Tokens of its answer that are still to come."""
        return len(self.asked.prompt) + self.asked.sampling.max_tokens - len(self.known)

    def asking(self, seed: int, now: float) -> Asked:
        """It as routers see it."""
        return Asked(self.number, self.known, seed, now, self.key)

    def on_its_way(self, replica: int) -> bool:
        """Whether its cache is on the way from or to a replica."""
        if self.where == "fetch":
            return replica == self.place.prefill
        return self.where == "link" and replica in self.place

    def let_go(self, replicas: Sequence[Replica]) -> None:
        """The pages at the prefilling replica are needed no more."""
        if self.sent is not None:
            replicas[self.place.prefill].release(f"{self.asked.id} out", self.sent)
            self.sent = None

    def survivor_frees(self, dead: int, replicas: Sequence[Replica]) -> None:
        """What is kept for it elsewhere than on the dead replica is needed no more."""
        if self.place.prefill == dead:
            self.sent = self.fetched = None
        else:
            self.let_go(replicas)
        if self.kept is not None and self.place.decode != dead:
            replicas[self.place.decode].release(self.asked.id, self.kept)
        self.kept = None

    def request(self, answer: int, on_end: Callable[[Request], None]) -> Request:
        """The part of it that one replica does: so many more tokens."""
        old, wish = self.asked, self.asked.sampling
        if wish.max_tokens != answer:
            wish = wish.model_copy(update={"max_tokens": answer})
        one = Request(self.known, wish, old.arrival, old.user, old.priority, old.salt, id=old.id)
        one.on_end, one.seed = on_end, old.seed
        one.rank, one.group, one.shared = old.rank, old.group, old.shared
        return one


class Recovery:
    """Requests of a replica that died at `since` (seconds), until each of them runs again."""

    def __init__(self, since: float) -> None:
        self.since = since
        self._missing: set[str] = set()

    def of(self, names: set[str]) -> None:
        """These have lost their replica."""
        self._missing = names

    def runs(self, name: str, now: float) -> str:
        """`name` runs again, or is over; once it is the last of them, how long all that took."""
        if name not in self._missing:
            return ""
        self._missing.discard(name)
        if self._missing:
            return ""
        return f"all its requests run again {now - self.since:.3g} s after"
