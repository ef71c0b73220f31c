"""Every rank has one port out and one in, joined by a switch."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.wiring import Wiring


class Switch(Wiring):
    """Messages of a rank share its port, whomever they are for."""

    kind: Literal["switch"] = knob("switch", doc="one port out and one in for each rank")

    def path(self, source: int, target: int, ranks: int) -> list[tuple[str, ...]]:
        return [(f"{source} out", f"{target} in")]
