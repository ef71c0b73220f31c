"""Hit ratio of a block cache on a trace: its blocks through the engine's own cache and prefix tree.

Requests come one after another, so that nothing but the trace, the capacity and the eviction policy
decides; a block of the trace is a page of one token here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import FAR, Eviction
from engine.core.clock import VirtualClock
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.inference.workloads.traces.records import Traced


class Hits(NamedTuple):
    """Blocks found in the cache, of all."""

    found: int
    total: int

    @property
    def ratio(self) -> float:
        return self.found / self.total


def hit_ratio(requests: Sequence[Traced], capacity: int, eviction: Eviction) -> Hits:
    """Blocks of `requests` found in a cache of `capacity` blocks (0: as many as there are).

    `FurthestNextUse` is told when each block comes next: the offline optimum. Raises BadInput where
    the trace has no blocks, or one request has more than fit.
    """
    most = max((len(each.blocks) for each in requests), default=0)
    total = sum(len(each.blocks) for each in requests)
    if not most:
        raise BadInput("the trace has no hash_ids: nothing says which prompts begin alike")
    if capacity and capacity < most:
        raise BadInput(f"a cache of {capacity} blocks: one request has {most}; give more")
    numbers = {block: n for n, block in enumerate(dict.fromkeys(
        block for each in requests for block in each.blocks
    ))}  # fmt: skip
    chains = [np.array([numbers[block] for block in each.blocks], np.int32) for each in requests]
    after = _next_uses(chains, len(numbers))
    cache = Cache(capacity or total, 1, eviction, VirtualClock(), _unheard)
    found = 0
    for place, chain in enumerate(chains):
        cache.step = place
        found += _ask(cache, str(place), chain, after[place])
    return Hits(found, total)


def _ask(cache: Cache, owner: str, chain: np.ndarray, after: list[int]) -> int:
    """One request takes what is there, computes the rest, and leaves; returns what was there."""
    hits = cache.tree.match(chain)
    pages = cache.hit(owner, hits)
    fresh = cache.take(owner, len(chain) - len(hits))
    rest = chain[len(hits) :]
    cache.index(owner, fresh, rest, hits[-1] if hits else cache.tree.root(), 0, len(rest))
    every = np.concatenate([pages, fresh])
    cache.ages.soon[every] = FAR - np.array(after, np.int64)
    cache.drop(owner, every)
    return len(hits)


def _next_uses(chains: list[np.ndarray], count: int) -> list[list[int]]:
    """For each block of each request, the request that has it next; FAR for none."""
    coming = [FAR] * count
    after: list[list[int]] = []
    for place in range(len(chains) - 1, -1, -1):
        blocks = chains[place].tolist()
        after.append([coming[block] for block in blocks])
        for block in blocks:
            coming[block] = place
    return after[::-1]


def _unheard(event: AnyEvent) -> None:
    """Nobody asks for the events."""
