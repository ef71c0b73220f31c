"""Prompt and token pools (Splitwise, arXiv 2311.18677): prefill on some replicas, decode on others.

Both replicas of a request are chosen when it arrives. Where a pool's queues are long the request
goes to the mixed pool, or to the other pool, and is then prefilled and decoded in one place.
"""

from collections.abc import Sequence
from typing import Literal

from engine.core.config import knob
from engine.fleet.pools.pools import Place, Pools, Role
from engine.fleet.routers.router import Asked, Load, Router


class PrefillDecode(Pools):
    """`prefill` replicas compute prompts, `mixed` do both, the rest decode."""

    kind: Literal["prefill_decode"] = "prefill_decode"
    prefill: int = knob(
        2, "Replicas that compute prompts", low=1, high=100_000, called="Prefill replicas"
    )
    mixed: int = knob(0, "Replicas that do both", low=0, high=100_000)
    overflow: int = knob(
        16_384, "Prompt tokens that wait on a replica beyond which another pool is asked", low=1,
        high=1 << 30, unit="tokens", log=True,
    )  # fmt: skip
    layer_by_layer: bool = knob(True, "Send each layer's cache while the next is computed")
    layered_from: int = knob(
        512, "Prompts from which on it is sent so", low=0, high=1 << 24, unit="tokens"
    )
    decode_device: str = knob("", "Device of decoding replicas; none: the engine's")
    fault: Literal["none", "stays"] = knob(
        "none", "What goes wrong: stays, no cache is handed over, an answer is computed where its "
        "prompt was", group="faults",
    )  # fmt: skip

    def role(self, number: int, count: int) -> Role:
        if number < self.prefill:
            return "prefill"
        return "mixed" if number < self.prefill + self.mixed else "decode"

    def device(self, role: Role) -> str:
        return self.decode_device if role == "decode" else ""

    def layered(self, tokens: int) -> bool:
        return self.layer_by_layer and tokens >= self.layered_from

    def place(self, asked: Asked, loads: Sequence[Load], count: int, router: Router) -> Place:
        pools: dict[Role, list[Load]] = {"prefill": [], "mixed": [], "decode": []}
        for load in loads:
            pools[self.role(load.number, count)].append(load)
        first = self._prefills(asked, pools, router)
        stays = first not in pools["prefill"] or not pools["decode"] or self.fault == "stays"
        if stays:
            return Place(first.number, first.number)
        second = min(pools["decode"], key=lambda load: (load.requests, load.tokens, load.number))
        return Place(first.number, second.number)

    def _prefills(self, asked: Asked, pools: dict[Role, list[Load]], router: Router) -> Load:
        """From its own pool while that keeps up, then from the mixed one, then from the others."""
        longest: Load | None = None
        for pool in (pools["prefill"], pools["mixed"], pools["decode"]):
            if not pool:
                continue
            chosen = router.route(asked, pool)
            if chosen.tokens <= self.overflow:
                return chosen
            longest = longest or chosen
        assert longest is not None  # somebody is alive
        return longest
