"""By the priority that the client gave."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request


class Priority(Ordering):
    """Higher priority goes first, and may take the place of a running lower one."""

    kind: Literal["priority"] = "priority"
    displace: bool = knob(
        True,
        "A waiting request may displace a running one of lower priority",
        called="Higher priority displaces",
    )

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return (-float(request.priority),)

    @property
    def displaces(self) -> bool:
        return self.displace

    def outranks(self, waiting: Request, running: Request, view: View) -> bool:
        return self.displace and waiting.priority > running.priority
