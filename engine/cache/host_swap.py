"""Swap to the host tier, page by page: what leaves the device, what returns, and the copies that an
executor makes before a step.

`BlockGroupSwap` (block_group_swap) is FastSwitch's in its place.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.cache.cache import Cache

NO_PAIRS = np.zeros((0, 2), np.int32)


class HostSwap:
    """Whole requests leave and return; the step waits for the copies, one a page."""

    overlaps = False  # whether steps go on while pages are on their way
    grows = False  # whether it matters beside which page the next one lies

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.landing: dict[str, float] = {}  # owner -> when its pages are there (seconds)
        # Seconds that runs of so many pages take over the host link, a copy each: the executor's.
        self.copy_seconds: Callable[[np.ndarray], float] = lambda pages_R: 0.0
        self._out: list[np.ndarray] = []
        self._back: list[np.ndarray] = []

    @property
    def room(self) -> int:
        """Host pages that can be had."""
        return self.cache.host.free

    @property
    def pending(self) -> bool:
        """Whether copies wait for the next step."""
        return bool(self._out or self._back)

    def send(self, owner: str, pages: np.ndarray, tokens_T: np.ndarray, salt: str) -> np.ndarray:
        """`owner` leaves `pages`, which hold its tokens, for the host pages that are returned."""
        targets = self.cache.swap_out(owner, pages, len(tokens_T))
        self._out.append(np.stack([pages, targets], 1))
        return targets

    def bring(self, owner: str, host_pages: np.ndarray, cached: list[int]) -> np.ndarray:
        """`owner`'s contents return, but for what still lies in the tree's pages `cached`."""
        pages = self.cache.swap_in(owner, host_pages, cached)
        self._back.append(np.stack([host_pages, pages], 1)[len(cached) :].astype(np.int32))
        return pages

    def ended(self, pages: np.ndarray, tokens_T: np.ndarray, salt: str) -> None:
        """A request is over whose full `pages` hold `tokens_T`; they are about to be left."""

    def recall(self, tokens_T: np.ndarray, salt: str) -> np.ndarray | None:
        """Host pages that hold the beginning of `tokens_T`, held from now on; None: there are
        none."""
        return None

    def forget(self) -> None:
        """Copies on the host that no request waits for are kept no longer."""

    def grows_after(self, pages: np.ndarray) -> None:
        """The next pages taken go, one each, to those who hold `pages` as their last."""

    def wait_for(self, owner: str) -> None:
        """The coming step begins once the pages of `owner` are there; it has arrived then."""

    def arrived(self, owner: str) -> None:
        """The pages of `owner` are there."""

    def leaves(self, owner: str) -> None:
        """`owner` waits no more for its pages, if it did."""
        self.landing.pop(owner, None)

    def movements(self) -> dict[str, Any]:
        """Pairs of pages to be copied before the coming step, by the step's name for them."""
        if not self.pending:
            return {}
        out, back = (
            np.concatenate(pairs) if pairs else NO_PAIRS for pairs in (self._out, self._back)
        )
        self._out, self._back = [], []
        return {"swap_out": out, "swap_in": back}
