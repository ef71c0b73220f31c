"""Pools of replicas: who prefills a request and who decodes it; together, each does both."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from engine.core.config import Policy
from engine.fleet.routers.router import Asked, Load, Router
from engine.inference.executors.modelled import Modelled

Role: TypeAlias = Literal["mixed", "prefill", "decode"]
# Who finds what was kept in a pooled cache; a neighbour of who wrote it: by mistake.
Reach: TypeAlias = Literal["everybody", "writer", "neighbour"]


class Place(NamedTuple):
    """Numbers of the replicas that compute a request's prompt and its answer."""

    prefill: int
    decode: int


class Pools(Policy):
    """How a fleet's replicas are divided among the phases of requests."""

    folder = "engine.fleet.pools"

    @abstractmethod
    def role(self, number: int, count: int) -> Role:
        """What replica `number` of `count` is there for."""

    @abstractmethod
    def place(self, asked: Asked, loads: Sequence[Load], count: int, router: Router) -> Place:
        """Where a request goes; `loads`: replicas that are alive, of `count` in all."""

    def device(self, role: Role) -> str:
        """The device of replicas of a role; "" for that of the engine."""
        return ""

    def serving(self, role: Role, executor: Modelled) -> Modelled:
        """How replicas of a role are executed, where the engine says `executor`."""
        name = self.device(role)
        return executor.model_copy(update={"device": name}) if name else executor

    def pooled(self) -> tuple[int, str, float, Reach] | None:
        """Pages of a cache that all replicas reach, their devices' link to it, its bandwidth (0:
        the link's) and who finds what was kept; None: each replica has its own alone."""
        return None

    def layered(self, tokens: int) -> bool:
        """Whether the cache of a prompt of so many tokens is sent while its layers are computed."""
        return False


class Together(Pools):
    """Every replica prefills and decodes what it is given."""

    kind: Literal["together"] = "together"

    def role(self, number: int, count: int) -> Role:
        return "mixed"

    def place(self, asked: Asked, loads: Sequence[Load], count: int, router: Router) -> Place:
        chosen = router.route(asked, loads).number
        return Place(chosen, chosen)
