"""All-reduces by put, signal and wait on a described cluster, beside those that send and receive.

A put of a memory channel begins at once, one of the port channel when its proxy has heard; a signal
is a message of its own behind it, but for packets (LL), whose flags take half of the link. All
algorithms pay a kernel's launch once.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.errors import BadInput
from engine.distributed.channel import Channel, Flush, Program, Put, Signal, Step, Wait, programs
from engine.distributed.channels.shared_memory import MemoryHB, MemoryLL, Port
from engine.distributed.collective import Round, Transfers
from engine.distributed.flows.collective_work import algorithm
from engine.distributed.flows.work import Work
from engine.hardware.topology import Topology

SIGNAL = 8.0  # bytes of a semaphore
ONE_SIDED = ("one_phase", "two_phase", "ring")
CHUNKS = (4, 16)  # that a tree is pipelined in


@dataclass(frozen=True)
class Described:
    """`ranks` devices, in nodes of `node`; a program begins after `launch` seconds."""

    topology: Topology
    ranks: int
    node: int
    launch: float


def seconds(
    described: Described, plan: Transfers, size: float, channel: Channel, synchronous: bool = False
) -> float:
    """When all ranks have the result of `size` bytes. `synchronous`: a put returns once it has
    arrived, which is wrong. Raises BadInput where ranks wait for one another."""
    return _Played(described, plan, size, channel, synchronous).end()


class _Played:
    """Programs as tasks on the cluster's clock."""

    def __init__(
        self, described: Described, plan: Transfers, size: float, channel: Channel,
        synchronous: bool,
    ) -> None:  # fmt: skip
        ranks = described.ranks
        self.work, self.channel = Work(described.topology), channel
        self.piece, self.synchronous = size / plan.pieces, synchronous
        begun = self.work.compute(described.launch)
        self.programs = programs(plan, ranks)
        self.at = [[begun] for _ in range(ranks)]  # what a rank has waited for
        self.proxy = [begun] * ranks
        self.leaving: list[list[int]] = [[] for _ in range(ranks)]
        self.put: dict[tuple[int, int], int] = {}
        self.signals: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    def end(self) -> float:
        left, ranks = [0] * len(self.programs), range(len(self.programs))
        # Each rank as far as it comes, until no signal is left that lets one go on.
        while sum(self._goes_on(rank, self.programs[rank], left) for rank in ranks):
            continue
        stuck = [rank for rank, at in enumerate(left) if at < len(self.programs[rank])]
        if stuck:
            raise BadInput(f"programs: ranks {stuck} wait for signals that nobody gives")
        return self.work.played().end

    def _goes_on(self, rank: int, program: Program, left: list[int]) -> bool:
        """Whether it came any further; up to a signal that was not given yet."""
        begun = left[rank]
        while left[rank] < len(program) and self._step(rank, program[left[rank]]):
            left[rank] += 1
        return left[rank] > begun

    def _step(self, rank: int, step: Step) -> bool:
        work, here = self.work, self.at[rank]
        if isinstance(step, Put):
            after = here
            if self.channel.asked:
                self.proxy[rank] = work.compute(self.channel.asked, [*here, self.proxy[rank]])
                after = [self.proxy[rank]]
            size = (step.last - step.first) * self.piece * self.channel.wire
            task = self.put[rank, step.target] = work.send(rank, step.target, size, after)
            self.leaving[rank].append(task)
            if self.synchronous:
                self.at[rank] = [task]
        elif isinstance(step, Signal):
            task = self.put[rank, step.target]
            if self.channel.signals:
                task = work.send(rank, step.target, SIGNAL, [task])
            self.signals[rank, step.target].append(task)
        elif isinstance(step, Wait):
            given = self.signals[step.source, rank]
            if len(given) < step.times:
                return False
            self.at[rank] = [work.join([*here, given[step.times - 1]])]
        elif isinstance(step, Flush) and self.channel.asked:
            # What a thread has copied may be overwritten at once.
            self.at[rank] = [work.join([*here, *self.leaving[rank]])]
            self.leaving[rank] = []
        return True


def pipelined(plan: Transfers, chunks: int) -> Transfers:
    """A plan of whole tensors in so many chunks, each a round behind the one before."""
    if plan.pieces != 1:
        raise BadInput(f"pipelined: a plan of {plan.pieces} pieces; it is for whole tensors")
    rounds: list[Round] = []
    for time in range(len(plan.rounds) + chunks - 1):
        under_way = ((time - c, c) for c in range(chunks) if 0 <= time - c < len(plan.rounds))
        rounds.append(tuple(
            each._replace(first=c, last=c + 1) for n, c in under_way for each in plan.rounds[n]
        ))  # fmt: skip
    return Transfers(chunks, tuple(rounds))


@dataclass(frozen=True)
class Best:
    """The fastest of several: `told`, its algorithm and channel, and its seconds."""

    told: str
    seconds: float


def one_sided(described: Described, size: float, synchronous: bool = False) -> Best:
    """The fastest program of put, signal and wait."""
    plans = {kind: _plan(described, kind) for kind in ONE_SIDED}
    return _best(described, plans, (MemoryLL(), MemoryHB(), Port()), size, synchronous)


def two_sided(described: Described, size: float) -> Best:
    """The fastest of ring and tree, also pipelined: what NCCL chooses from, its messages over the
    same memory channels."""
    tree = _plan(described, "tree")
    plans = {"ring": _plan(described, "ring"), "tree": tree}
    plans |= {f"tree in {chunks}": pipelined(tree, chunks) for chunks in CHUNKS}
    return _best(described, plans, (MemoryLL(), MemoryHB()), size)


def _plan(described: Described, kind: str) -> Transfers:
    return algorithm(kind).transfers(described.ranks, described.node)


def _best(
    described: Described, plans: dict[str, Transfers], channels: Sequence[Channel], size: float,
    synchronous: bool = False,
) -> Best:  # fmt: skip
    found = [
        Best(f"{kind} by {each.kind}", seconds(described, plan, size, each, synchronous))
        for kind, plan in plans.items()
        for each in channels
    ]
    return min(found, key=lambda best: best.seconds)
