"""Preemption by recompute: forget the pages, compute them again later."""

from typing import Literal

from engine.inference.policy import Preemption, View
from engine.inference.request import Request


class Recompute(Preemption):
    """Pages are given up; the prompt and the answer so far are computed again on return."""

    kind: Literal["recompute"] = "recompute"

    def swaps(self, request: Request, pages: int, view: View) -> bool:
        return False
