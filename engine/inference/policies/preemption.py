"""Preemption policies: swap a request's pages to the host, or forget and recompute them."""

from abc import abstractmethod
from typing import Literal

from engine.core.config import Policy
from engine.inference.policies.policy import View
from engine.inference.requests.request import Request


class Preemption(Policy):
    """How a running request gives its pages up when there are too few."""

    folder = "engine.inference.policies.preemption"

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
