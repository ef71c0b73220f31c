"""Preemption by swap: move the pages to host memory and back."""

from typing import Literal

from engine.inference.policy import Preemption, View
from engine.inference.request import Request


class Swap(Preemption):
    """Pages go to the host tier while it has room; after that they are computed again."""

    kind: Literal["swap"] = "swap"

    def swaps(self, request: Request, pages: int, view: View) -> bool:
        return pages <= view.host_free
