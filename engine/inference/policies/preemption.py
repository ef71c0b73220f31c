"""Preemption policies: swap a request's pages to the host, or forget and recompute them."""

from abc import abstractmethod
from typing import Literal

from engine.cache.cache import Cache
from engine.cache.host_swap import HostSwap
from engine.core.config import Policy, knob
from engine.inference.policies.policy import View
from engine.inference.requests.request import Request


class Preemption(Policy):
    """How a running request gives its pages up when there are too few."""

    folder = "engine.inference.policies.preemption"

    def swap(self, cache: Cache) -> HostSwap:
        """How pages go to the host tier of `cache` and come back."""
        return HostSwap(cache)

    @abstractmethod
    def swaps(self, request: Request, pages: int, view: View) -> bool:
        """Whether its `pages` go to the host (True) or are forgotten and computed again (False)."""


class Recompute(Preemption):
    """Pages are given up; the prompt and the answer so far are computed again on return."""

    kind: Literal["recompute"] = "recompute"

    def swaps(self, request: Request, pages: int, view: View) -> bool:
        return False


class Swap(Preemption):
    """Pages go to the host tier while it has room; after that they are computed again."""

    kind: Literal["swap"] = "swap"

    def swaps(self, request: Request, pages: int, view: View) -> bool:
        return pages <= view.host_free


class BlockGroups(Preemption):
    """FastSwitch (arXiv 2411.18424): groups of contiguous pages go in one copy, beside the steps,
    and leave a copy on the host."""

    kind: Literal["block_groups"] = "block_groups"
    room: int = knob(
        60, "Pages left behind a new group to grow into; 0: pages as they come, a copy each",
        low=0, high=4096, unit="pages",
    )  # fmt: skip
    overlaps: bool = knob(True, "Steps go on while pages are on their way")
    reuses: bool = knob(True, "Full pages stay on the host, for the next time and the next turn")
    fault: Literal["none", "stale"] = knob(
        "none", "What goes wrong: a page that was kept stands for what was written behind it since",
        group="faults",
    )  # fmt: skip

    def swaps(self, request: Request, pages: int, view: View) -> bool:
        return pages <= view.host_free

    def swap(self, cache: Cache) -> HostSwap:
        from engine.cache.block_group_swap import BlockGroupSwap

        return BlockGroupSwap(cache, self.room, self.overlaps, self.reuses, self.fault == "stale")
