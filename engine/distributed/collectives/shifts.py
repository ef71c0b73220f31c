"""All-to-all by shifts: in round k every member sends to the one k places further."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.distributed.collective import Collective, Pattern, Round, Transfer, Transfers, slower
from engine.hardware.collectives import all_to_all
from engine.hardware.link import Link


class Shifts(Collective):
    """n - 1 rounds of an n-th, one partner at a time, so that no port has two messages. Piece j of
    member i becomes piece i of member j. Exact on equal links."""

    kind: Literal["shifts"] = knob("shifts", doc="all-to-all, one partner after another")
    operation: ClassVar[str] = "all_to_all"

    def transfers(self, ranks: int, node: int) -> Transfers:
        rounds: list[Round] = []
        for step in range(1, ranks):
            to = [(at + step) % ranks for at in range(ranks)]
            rounds.append(tuple(
                Transfer(at, to[at], to[at], to[at] + 1, False, at) for at in range(ranks)
            ))  # fmt: skip
        return Transfers(ranks, tuple(rounds), original=True)

    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        return [
            Pattern(tuple((at, (at + step) % ranks) for at in range(ranks)), 1 / ranks, 1)
            for step in range(1, ranks)
        ]

    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        return all_to_all(slower(near, far, ranks, node), ranks, size)
