"""Each rank is joined to its two neighbours; messages for others are passed on."""

from typing import Literal

from engine.core.config import knob
from engine.distributed.wiring import Wiring


class Circle(Wiring):
    """The shorter way round, hop by hop, each holding the whole message before it goes on."""

    kind: Literal["ring"] = knob("ring", doc="links to two neighbours, each way")

    def path(self, source: int, target: int, ranks: int) -> list[tuple[str, ...]]:
        onward = (target - source) % ranks
        turn = 1 if onward <= ranks - onward else -1
        hops: list[tuple[str, ...]] = []
        at = source
        while at != target:
            after = (at + turn) % ranks
            hops.append((f"{at}>{after}",))
            at = after
        return hops
