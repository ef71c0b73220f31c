"""Collective algorithm as a plan of transfers: who sends which pieces to whom, round by round.

The same plan is played on a described network (`engine.distributed.flows`), carried out on real
ranks by put, signal and wait (`engine.distributed.channel`) and counted. Members are numbered from
0; each holds a tensor of equal pieces. In a round a member sends what it held when the round began.
"""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from engine.core.config import Policy
from engine.core.errors import BadInput
from engine.hardware.link import Link

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


class Transfer(NamedTuple):
    """Pieces `first` up to, not including, `last`, added to what is there or put in its place.

    `place`: the first piece that they become there; the same where it is -1.
    """

    source: int
    target: int
    first: int
    last: int
    add: bool
    place: int = -1


Round = tuple[Transfer, ...]


@dataclass(frozen=True)
class Transfers:
    """`pieces`: how many the tensor is cut into; `rounds` in their order. `owned`: the pieces that
    are right on a member in the end, by member; all of them where it is empty. `original`: what is
    sent is what a member held before the first round."""

    pieces: int
    rounds: tuple[Round, ...]
    owned: tuple[tuple[int, int], ...] = ()
    original: bool = False

    def bounds(self, length: int) -> list[int]:
        """Where pieces of a tensor of `length` numbers begin, and its end; as even as may be."""
        return [piece * length // self.pieces for piece in range(self.pieces + 1)]

    def sent(self, length: int) -> dict[tuple[int, int], int]:
        """(source, target) -> numbers that go that way, of a tensor of `length`."""
        found: dict[tuple[int, int], int] = {}
        edge = self.bounds(length)
        for each in (transfer for round in self.rounds for transfer in round):
            pair = each.source, each.target
            found[pair] = found.get(pair, 0) + edge[each.last] - edge[each.first]
        return found


@dataclass(frozen=True)
class Pattern:
    """Rounds that look alike: each of `pairs` carries `share` of the tensor, `times` over."""

    pairs: tuple[tuple[int, int], ...]
    share: float
    times: int


class Collective(Policy):
    """An algorithm; concrete ones lie one to a file in `collectives`.

    `ranks`: members; `node`: how many of them, one after another, share a node.
    """

    folder = "engine.distributed.collectives"
    operation: ClassVar[str] = "all_reduce"

    @abstractmethod
    def transfers(self, ranks: int, node: int) -> Transfers:
        """The whole plan. Raises BadInput where the algorithm does not fit the ranks."""

    @abstractmethod
    def patterns(self, ranks: int, node: int) -> list[Pattern]:
        """Its rounds by what travels at once, without pieces: short for thousands of ranks."""

    @abstractmethod
    def seconds(self, near: Link, far: Link, ranks: int, node: int, size: float) -> float:
        """Where nothing else is on the links: `near` within a node, `far` between nodes; `size`
        bytes of the whole tensor. Exact on equal links, and on nodes where the docstring says."""

    def fits(self, ranks: int, node: int) -> bool:
        """Whether it is one for so many ranks."""
        try:
            self.refuse(ranks, node)
        except BadInput:
            return False
        return True

    def refuse(self, ranks: int, node: int) -> None:
        """Raises BadInput where it is none."""
        if ranks < 1 or node < 1:
            raise BadInput(
                f"collective {self.kind}: {ranks} ranks, nodes of {node}; take 1 at least"
            )


def slower(near: Link, far: Link, ranks: int, node: int) -> Link:
    """The link that a ring over consecutive members waits for."""
    return far if ranks > node else near


def turn(members: Sequence[int], blocks: Sequence[tuple[int, int]], add: bool) -> list[Round]:
    """Once round a ring: n - 1 rounds in which each member passes a block on.

    With `add` a reduce-scatter, after which member i has block i + 1; without it the all-gather
    that begins there.
    """
    count, rounds = len(members), []
    for step in range(count - 1):
        ahead = 0 if add else 1
        rounds.append(tuple(
            Transfer(members[i], members[(i + 1) % count], *blocks[(i + ahead - step) % count], add)
            for i in range(count)
        ))  # fmt: skip
    return rounds


def beside(groups: Iterable[Sequence[Round]]) -> list[Round]:
    """Rounds of several groups at the same time."""
    return [
        tuple(each for round in rounds for each in round) for rounds in zip(*groups, strict=True)
    ]


def around(members: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Each member and the next, the last one's being the first."""
    count = len(members)
    return tuple((members[i], members[(i + 1) % count]) for i in range(count)) if count > 1 else ()


def units(count: int) -> list[tuple[int, int]]:
    """Blocks of one piece each."""
    return [(piece, piece + 1) for piece in range(count)]
