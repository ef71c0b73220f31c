"""Session affinity with work stealing: a request goes to its session's cache; the idle take it.

After SAGA's abstract: correlated requests meet one replica, and load is balanced by replicas that
have nothing to wait for and take requests of others which have not begun.
"""

from collections.abc import Sequence
from typing import Literal

from engine.core.config import knob
from engine.fleet.routers.router import Asked, Load, Router, least


class WorkStealing(Router):
    """Where most of the prompt is cached; replicas with little to compute steal what waits."""

    kind: Literal["work_stealing"] = "work_stealing"
    steals: bool = knob(True, "Waiting requests leave a replica that is behind")
    behind_by: int = knob(
        4096, "Prompt tokens that wait on a replica before others steal from it", low=0,
        high=1 << 24, unit="tokens",
    )  # fmt: skip

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        found = [load.found(asked.prompt) for load in loads]
        most = max(found)
        return least([load for load, each in zip(loads, found, strict=True) if each == most])

    @property
    def moving(self) -> bool:
        return self.steals

    def behind(self, load: Load) -> bool:
        return load.tokens > self.behind_by

    def moves(self, asked: Asked, here: Load, loads: Sequence[Load]) -> Load | None:
        """The replica that is done with it soonest, where that is before its own would be."""

        def done(load: Load) -> int:
            return load.tokens + len(asked.prompt) - load.found(asked.prompt)

        others = [load for load in loads if load is not here]
        if not others:
            return None
        thief = min(others, key=done)
        return thief if done(thief) < here.tokens - self.behind_by else None
