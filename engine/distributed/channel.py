"""Channel: one-sided puts between ranks, signals and waits, and collectives as programs of them.

After MSCCL++ (Shah et al., arXiv 2504.09014): `put` writes into a peer's memory, `signal` counts up
a semaphore there after all that was put before it, `wait` is for a count of one's own semaphore,
`flush` until what was put may be overwritten. A plan's program is written once: real ranks follow
it over shared memory (`engine.distributed.channels`), the cluster's clock over described links.
"""

from collections import defaultdict
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from engine.core.config import Policy
from engine.distributed.collective import Transfers

Fault: TypeAlias = Literal["none", "early_signal", "wrong_count", "wrong_offset"]
FAULTY = 0  # the rank that a fault is of


class Put(NamedTuple):
    """Own pieces `first` to `last` to piece `place` of the target's inbox: the `number`-th put to
    it, from 1. `shift`: numbers that it lands beside its place, which is wrong."""

    target: int
    first: int
    last: int
    place: int
    number: int
    shift: int = 0


class Signal(NamedTuple):
    """Count up the target's semaphore of this rank, once all put there before has arrived."""

    target: int


class Wait(NamedTuple):
    """Until `source` has signalled so many `times`."""

    source: int
    times: int


class Take(NamedTuple):
    """Pieces from `place` of the own inbox, `number` puts of `source` being there: added to the
    own ones from `first` to `last`, or put in their place."""

    source: int
    place: int
    first: int
    last: int
    add: bool
    number: int


class Flush(NamedTuple):
    """Until what was put may be overwritten here."""


class Hold(NamedTuple):
    """A fault's: until the target has taken `number` puts of this rank, too early."""

    target: int
    number: int


Step: TypeAlias = Put | Signal | Wait | Take | Flush | Hold
Program: TypeAlias = list[Step]


class Channel(Policy):
    """How puts go from one rank to another; real ranks' side of it: `channels.shared_memory`.

    `wire`: bytes on the link for each byte put; `signals`: whether a signal is a message of its
    own; `asked`: seconds until a put begins.
    """

    folder = "engine.distributed.channels"
    wire: ClassVar[float] = 1.0
    signals: ClassVar[bool] = True

    @property
    def asked(self) -> float:
        return 0.0


def programs(plan: Transfers, ranks: int, fault: Fault = "none") -> list[Program]:
    """What each rank does. Every transfer has a place of its own in its target's inbox, so nothing
    is overwritten before it was taken."""
    made: list[Program] = [[] for _ in range(ranks)]
    filled: defaultdict[int, int] = defaultdict(int)  # pieces of each rank's inbox
    counts: defaultdict[tuple[int, int], int] = defaultdict(int)  # puts by (source, target)
    for round in plan.rounds:
        later: list[tuple[int, Step]] = []
        for each in round:
            source, target, size = each.source, each.target, each.last - each.first
            counts[source, target] += 1
            number, place = counts[source, target], filled[target]
            filled[target] += size
            shift = int(fault == "wrong_offset" and source == FAULTY)
            put = Put(target, each.first, each.last, place, number, shift)
            steps: Program = [put, Signal(target)]
            if fault == "early_signal" and source == FAULTY:
                steps = [Signal(target), Hold(target, number), put]
            if fault == "wrong_count" and target == FAULTY:
                steps = [Hold(target, number), *steps]
            made[source] += steps
            wrong = int(fault == "wrong_count" and target == FAULTY)
            first = each.first if each.place < 0 else each.place
            later.append((target, Wait(source, number - wrong)))
            take = Take(source, place, first, first + size, each.add, number - wrong)
            later.append((target, take))
        for rank in {each.source for each in round}:
            made[rank].append(Flush())
        for rank, step in later:
            made[rank].append(step)
    return made


def pieces_of(program: Program) -> int:
    """Pieces that a program's inbox has room for."""
    takes = [step for step in program if isinstance(step, Take)]
    return max((step.place + step.last - step.first for step in takes), default=0)
