"""Every pair of ranks has links of its own, one each way."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.wiring import Wiring


class Mesh(Wiring):
    """The link's bandwidth is that of one pair, one way."""

    kind: Literal["mesh"] = knob("mesh", doc="a link of its own for each pair and direction")

    def path(self, source: int, target: int, ranks: int) -> list[tuple[str, ...]]:
        return [(f"{source}>{target}",)]
