"""First come, first served."""

from typing import Literal

from engine.inference.policy import Ordering, View
from engine.inference.request import Request


class FirstComeFirstServed(Ordering):
    """By arrival."""

    kind: Literal["fcfs"] = "fcfs"

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return ()
