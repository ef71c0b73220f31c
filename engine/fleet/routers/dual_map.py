"""Dual mapping (DualMap, arXiv 2602.06502): two hashes of a prompt's beginning give two replicas.

Equal beginnings meet the same two replicas, so their caches are found again, and every replica
shares load with many others, as with two random choices. A beginning is hashed twice as far while
more than two requests in as many as there are replicas have it. A request goes where its beginning
is cached unless it would wait there beyond the objective; then to the one where it waits less.
Waiting requests of a replica that is behind move to their other replica.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.fleet.routers.router import Asked, Load, Router
from engine.kernels.draws import mix

POINTS = 16  # of each replica on a ring
STRIDE = 17  # of its tokens one in so many is hashed
DOUBLED = 7  # times that a beginning is, at most


class DualMap(Router):
    """Cache affinity while it keeps the objective, else the less loaded of two replicas."""

    kind: Literal["dual_map"] = "dual_map"
    beginning: int = knob(
        512, "Tokens of a prompt that are hashed", low=1, high=1 << 20, unit="tokens", log=True
    )
    objective: float = knob(
        0.5, "Predicted time to first token beyond which affinity ends", low=0.0, high=1e6, unit="s"
    )
    speed: float = knob(
        20_000.0, "Prompt tokens that a replica computes in a second", low=1.0, high=1e9, log=True
    )
    recent: int = knob(
        100, "Last requests by which a beginning is hot and hashed twice as far; 0: none ever is",
        low=0, high=100_000,
    )  # fmt: skip
    migrates: bool = knob(True, "Waiting requests leave a replica that is behind")

    def route(self, asked: Asked, loads: Sequence[Load]) -> Load:
        near, far = self.candidates(asked, loads)
        if far.found(asked.prompt) > near.found(asked.prompt):
            near, far = far, near
        if self.wait(asked, near) <= self.objective:
            return near
        return min((near, far), key=lambda load: self.wait(asked, load))

    @property
    def moving(self) -> bool:
        return self.migrates

    def behind(self, load: Load) -> bool:
        return load.tokens / self.speed > self.objective

    def moves(self, asked: Asked, here: Load, loads: Sequence[Load]) -> Load | None:
        others = [load for load in self.candidates(asked, loads) if load is not here]
        if not others or self.wait(asked, others[0]) > self.objective:
            return None
        return others[0]

    def wait(self, asked: Asked, load: Load) -> float:
        """Predicted seconds to the first token: what waits there, and what it has not cached."""
        missing = len(asked.prompt) - load.found(asked.prompt)
        return (load.tokens + missing) / self.speed

    @property
    def remembered(self) -> int:
        return self.recent

    def keys(self, prompt: np.ndarray) -> tuple[int, ...]:
        """Of its beginning, and of ever twice as much of the prompt as there is so much."""
        keys, key = list[int](), 0
        tokens = prompt[: self.beginning << DOUBLED : STRIDE].tolist()
        ends = [self.beginning << time for time in range(DOUBLED + 1 if self.recent else 1)]
        for start, end in zip([0, *ends], ends, strict=False):
            if keys and end > len(prompt):
                break
            for token in tokens[-(-start // STRIDE) : -(-end // STRIDE)]:
                key = mix(key ^ token)
            keys.append(key)
        return tuple(keys)

    def candidates(self, asked: Asked, loads: Sequence[Load]) -> tuple[Load, Load]:
        """Of the two rings, the replica that follows the beginning's place."""
        key = asked.key or self.keys(asked.prompt)[0]
        first = _follows(key, loads, 0)
        rest = [load for load in loads if load is not first]
        return first, _follows(key, rest, 1) if rest else first


def _follows(key: int, loads: Sequence[Load], ring: int) -> Load:
    """The replica whose point on the ring comes first after the key's."""
    place = mix(key ^ (ring + 1))

    def distance(load: Load) -> int:
        return min((point - place) % (1 << 64) for point in _points(load.number, ring))

    return min(loads, key=distance)


@lru_cache(maxsize=1 << 16)
def _points(replica: int, ring: int) -> tuple[int, ...]:
    """Its points on a ring."""
    return tuple(mix(mix(replica * POINTS + point) ^ (ring + 7)) for point in range(POINTS))
