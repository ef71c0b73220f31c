"""Turns among callers: whoever's call has the fewest sequences running goes first (max-min fair
sharing of the batch's rows, as of bandwidth between flows; Bertsekas and Gallager, Data Networks,
section 6.5.2)."""

from typing import Literal

from engine.core.config import knob
from engine.inference.policies.policy import Ordering, View
from engine.inference.requests.request import Request


class ByTurns(Ordering):
    """Requests that came alone go by arrival; those of one source take turns with all others.

    A source is a call, not who made it: under requests that come alone without end a call of many
    keeps one row, and once its others have waited their `patience`, two.
    """

    kind: Literal["by_turns"] = "by_turns"
    displace: bool = knob(
        True,
        "Where there is no room, one of the source that has most running yields to one that has "
        "at least two fewer",
        called="Who has most makes room",
    )

    @property
    def takes_turns(self) -> bool:
        return True

    def key(self, request: Request, view: View) -> tuple[float, ...]:
        return (_held(request),)

    @property
    def displaces(self) -> bool:
        return self.displace

    def outranks(self, waiting: Request, running: Request, view: View) -> bool:
        # One fewer would be taken back at once.
        return self.displace and _held(waiting) + 2 <= _held(running)


def _held(request: Request) -> float:
    """Rows that its source has."""
    return float(request.row >= 0 if request.source is None else request.source.running)
