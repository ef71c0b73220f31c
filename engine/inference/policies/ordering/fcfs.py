"""First come, first served."""

from typing import Literal

from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request


class FirstComeFirstServed(Ordering):
    """By arrival."""

    kind: Literal["fcfs"] = "fcfs"

    @property
    def by_arrival(self) -> bool:
        return True

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return ()
