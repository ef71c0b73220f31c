"""Pooled cache: keys and values of whole pages in memory that every replica of a fleet reaches.

It is the engine's own cache (`engine.cache`), whose pages lie spread over the memory of all nodes,
so that no replica is nearer to one of them than another. A replica's port carries one transfer at
a time, in each direction.
"""

import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import LeastRecentlyUsed
from engine.core.clock import VirtualClock
from engine.fleet.faults import Faults
from engine.fleet.pools.pools import Reach
from engine.fleet.transfers import Sent, Wires
from engine.hardware.link import Link

OWNER = "pool"  # of pages while they are written


class PooledCache:
    """`pages` pages of `page_size` tokens, behind a port of `rate` bytes a second of each replica.

    `reach`: whether everybody finds what was kept, or one replica alone: that which wrote it, or by
    mistake that before it.
    """

    def __init__(
        self, pages: int, page_size: int, link: Link, rate: float, reach: Reach, faults: Faults
    ) -> None:
        self.reach = reach
        clock = VirtualClock()
        self.cache = Cache(
            pages, page_size, LeastRecentlyUsed(), clock, lambda event: None, quiet=True
        )
        self.wires = Wires(link, rate, 1, faults)
        self.read = self.written = 0.0  # bytes

    def found(self, tokens: np.ndarray, replica: int) -> int:
        """Pages that hold the beginning of a prompt; its last token is computed in any case."""
        most = (len(tokens) - 1) // self.cache.page_size
        return len(self.cache.tree.match(tokens, self._asked(replica), most))

    def fetch(self, tokens: np.ndarray, replica: int, size: float, now: float) -> Sent:
        """`size` bytes of a prompt's beginning go to a replica."""
        self._touch(self.cache.tree.match(tokens, self._asked(replica)))
        self.read += size
        return self._port(replica, size, now, into=True)

    def keep(self, tokens: np.ndarray, replica: int, page_bytes: float, now: float) -> int:
        """A replica writes what the pool has not of `tokens`; returns how many pages that was."""
        cache, salt = self.cache, self._salt(replica)
        whole = len(tokens) // cache.page_size
        had = cache.tree.match(tokens, salt, whole)
        held = cache.hit(OWNER, had)
        cache.step += 1
        fresh = cache.take(OWNER, min(whole - len(had), cache.available))
        table = np.concatenate([held, fresh])
        parent = int(table[len(had) - 1]) if had else cache.tree.root(salt)
        given = np.ascontiguousarray(tokens, np.int32)
        cache.index(OWNER, table, given, parent, len(had), len(table))
        cache.drop(OWNER, table)
        self.written += len(fresh) * page_bytes
        if len(fresh):
            self._port(replica, len(fresh) * page_bytes, now, into=False)
        return len(fresh)

    def _touch(self, pages: list[int]) -> None:
        """They are used now, so that others are forgotten first."""
        self.cache.step += 1
        self.cache.drop(OWNER, self.cache.hit(OWNER, pages))

    def _port(self, replica: int, size: float, now: float, into: bool) -> Sent:
        # Many nodes hold the pages: their side is never the one that is waited for.
        pair = (-2 - replica, replica) if into else (replica, -2 - replica)
        return self.wires.send(*pair, size, now)

    def _salt(self, replica: int) -> str:
        return "" if self.reach == "everybody" else f"replica {replica}"

    def _asked(self, replica: int) -> str:
        return self._salt(replica + (self.reach == "neighbour"))
