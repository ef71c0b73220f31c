"""Prefix-aware router: where the fewest prompt tokens wait, those not in the cache counted."""

from collections.abc import Sequence
from typing import Literal

from engine.core.config import knob
from engine.fleet.routers.router import Asked, Load, Router


class PrefixAware(Router):
    """Looks into every replica's prefix tree, as SGLang's router keeps a copy of each.

    A request goes where what it still has to compute, and what waits before it, is least.
    """

    kind: Literal["prefix_aware"] = "prefix_aware"
    balance: float = knob(
        1.0, "How much tokens that wait count; 0: only the cache matters", low=0.0, high=100.0
    )

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        def wait(load: Load) -> tuple[float, int, int]:
            missing = len(asked.prompt) - load.found(asked.prompt)
            return missing + self.balance * load.tokens, load.requests, load.number

        return min(loads, key=wait)
