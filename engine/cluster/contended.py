"""Pipeline simulation with link contention: a plan of several replicas on a cluster's shared links.

Takes what a config was worked out to; gives when every action of every replica happens, what
travelled meanwhile, and how much of each link was used when. Messages between stages go out from
every device of a rank at once, each with its part; gradients are summed by a collective's plan,
message by message, among the devices that have the same part of a stage.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from engine.core.errors import BadInput
from engine.distributed.flows.collective_work import algorithm, carry, times
from engine.distributed.flows.work import Played, Work
from engine.training.pipeline.cluster import OnCluster, Places, places
from engine.training.pipeline.config import PipelineConfig, slow_among
from engine.training.pipeline.job import Job
from engine.training.pipeline.stage_cost import Traffic
from engine.training.plan.actions import SENDS, Kind
from engine.training.plan.columns import CODES, NOBODY, B, Columns, F, I, W
from engine.training.plan.times import Timed, timed

MOST = 1_000_000  # messages of a run
REDUCE, STEP = CODES[Kind.REDUCE_GRAD], CODES[Kind.STEP]
PASSES = (F, B, I, W)
SEND_CODES = [CODES[kind] for kind in SENDS]


@dataclass(frozen=True)
class Sent:
    """Messages that belong together: between two ranks, with all their bytes."""

    source: int
    target: int
    bytes: float
    tag: str
    messages: list[int]


@dataclass(frozen=True)
class Contended:
    """`times`: of each replica. `carried` [channels]: bytes in all. `algorithm`: of the gradients'
    all-reduce, "" where there is none; `beside`: seconds of each that fits, quickest first, with
    the cluster to itself."""

    times: list[Timed]
    sent: list[Sent]
    played: Played
    carried: np.ndarray
    places: Places
    algorithm: str
    beside: dict[str, float]

    @property
    def end(self) -> float:
        return max(each.end for each in self.times)


def chosen(asked: OnCluster, found: Places, size: float) -> tuple[str, dict[str, float]]:
    """The algorithm of an all-reduce of `size` bytes, and what each that fits takes alone."""
    groups = [found.group(0, tensor) for tensor in range(found.tensor)]
    if len(groups[0]) < 2 or size <= 0:
        return "", {}
    beside = found.beside()
    took = times(found.topology, "all_reduce", groups, beside, size)
    if asked.all_reduce == "fastest":
        return next(iter(took)), took
    algorithm(asked.all_reduce).refuse(len(groups[0]), beside)
    return asked.all_reduce, took


def play(
    config: PipelineConfig, job: Job, slower: np.ndarray | None = None, uses: bool = True
) -> Contended:
    """`job` on the cluster that `config` names. `slower` [replicas, actions]: how many times as
    long each action takes. Raises BadInput where devices or messages are too many."""
    context, tensor = config.passes.devices
    replicas = config.cluster.replicas or config.passes.replicas(config.ranks)
    found = places(config.cluster, len(job.plan.ranks), replicas, context, tensor)
    job = job.on_network()
    table = timed(job.plan, job.costs).columns  # refuses a plan that is stuck, in words
    size = job.share.gradients / max(1, job.plan.chunks)
    kind, took = chosen(config.cluster, found, size)
    _bounded(job, table, found, kind)
    playing = _Playing(job, table, found, _slowed(config, table, found, slower))
    playing.passes()
    if kind:
        playing.reduces(kind, size)
    if job.costs.together:
        playing.together()
    played = playing.work.played(uses)
    return Contended(
        playing.times(played), playing.sent, played, playing.work.carried(), found, kind, took
    )


def _slowed(
    config: PipelineConfig, table: Columns, found: Places, slower: np.ndarray | None
) -> np.ndarray:
    """`slower` with the one rank that is slow, counted over all replicas."""
    whole = np.ones((found.replicas, len(table.kind))) if slower is None else slower.copy()
    replica, stage = divmod(config.slow_rank, found.stages)
    slow_among(config, found.replicas * found.stages)
    passes = np.isin(table.kind, PASSES)
    whole[replica, passes & (table.rank == stage)] *= config.slow_by
    return whole


def _bounded(job: Job, table: Columns, found: Places, kind: str) -> None:
    """Raises BadInput for what would take minutes."""
    ends = int((table.waits != NOBODY).sum()) + int(np.isin(table.kind, SEND_CODES).sum())
    rings = [bool(moves.tensor) + bool(moves.context) for moves in job.share.within]
    counts = [int((table.kind == CODES[Kind.F]).sum())]
    counts.append(int(np.isin(table.kind, [I, B]).sum()))
    inside = sum(ring * count for ring, count in zip(rings, counts, strict=True))
    messages = (ends + inside) * found.replicas * found.devices
    if kind:
        group = found.replicas * found.context
        rounds = algorithm(kind).patterns(group, found.beside())
        once = sum(len(each.pairs) * each.times for each in rounds)
        messages += once * found.tensor * int((table.kind == REDUCE).sum())
    if messages > MOST:
        raise BadInput(
            f"cluster: about {messages:,} messages in a step, at most {MOST:,} are played; take "
            "fewer replicas (cluster.replicas) or microbatches, or cluster.all_reduce=hierarchical"
        )


@dataclass
class _Playing:
    """A graph of work that is being built. `task` [replicas][actions]: the number of the task with
    which each action is over, numbered alike in all replicas; `first`: of the one it begins with,
    which is another where a rank's devices give one another something in a pass."""

    job: Job
    table: Columns
    places: Places
    slower: np.ndarray
    sent: list[Sent] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = Work(self.places.topology)
        table = self.table
        took = self.job.costs.passes[table.kind, table.stage].copy()
        moves = np.isin(table.kind, [CODES[k] for pair in SENDS.items() for k in pair])
        took[moves | ((table.kind == REDUCE) & (len(self._group()) > 1))] = 0.0
        self.first: list[list[int]] = []
        self.task: list[list[int]] = []
        within = {CODES[kind]: self.job.within(kind) for kind in (Kind.F, Kind.I, Kind.B)}
        shares = [within.get(kind, Traffic()) for kind in table.kind.tolist()]
        ranks = table.rank.tolist()
        for replica in range(self.places.replicas):
            own = (took * self.slower[replica]).tolist()
            facts = zip(ranks, own, self.slower[replica].tolist(), shares, strict=True)
            ends = [self._pass(replica, *each) for each in facts]
            self.first.append([first for first, _ in ends])
            self.task.append([last for _, last in ends])
        self.before = np.arange(len(took)) - 1
        self.before[table.first[:-1][np.diff(table.first) > 0]] = NOBODY

    def _pass(
        self, replica: int, stage: int, seconds: float, slower: float, moves: Traffic
    ) -> tuple[int, int]:
        """The first and the last task of an action of so many seconds of work: keys and values go
        round the context ranks beside the scores, sums round the tensor ranks beside nothing."""
        chunks = max(1, self.job.plan.chunks)
        if not moves.tensor and not moves.context:
            task = self.work.compute(seconds)
            return task, task
        found = self.places
        beside = min(seconds, slower * moves.beside / chunks)
        first = self.work.compute(seconds - beside)
        done = [self.work.compute(beside, [first])]
        devices = self._devices(stage, replica)
        after = [devices[each] for each in found.next_context()]
        done += self.work.sends(devices, after, moves.context / chunks, [first], flowing=True)
        ready = self.work.join(done)
        after = [devices[each] for each in found.next_tensor()]
        sums = self.work.sends(devices, after, moves.tensor / chunks, [ready], flowing=True)
        return first, self.work.join(sums)

    def _group(self) -> list[int]:
        return self.places.group(0, 0)

    def passes(self) -> None:
        """Every action after the one before it on its rank, and after what it waits for."""
        table = self.table
        lowered = table.partner.tolist()
        facts = (self.before, table.waits, table.rank, table.kind, table.microbatch)
        rows = list(zip(*(column.tolist() for column in facts), strict=True))
        for replica, task in enumerate(self.task):
            first = self.first[replica]
            for action, (before, waits, rank, kind, microbatch) in enumerate(rows):
                if before != NOBODY:
                    self.work.wait(first[action], task[before])
                if waits != NOBODY and rows[waits][2] == rank:
                    self.work.wait(first[action], task[waits])
                elif waits != NOBODY:
                    done = self._send(replica, rows[waits][2], rank, microbatch, [task[waits]])
                    self.work.wait(first[action], *done)
                elif kind in SEND_CODES:
                    other = lowered[action]
                    ready = [task[b] for b in (before, rows[other][0]) if b != NOBODY]
                    done = self._send(replica, rank, rows[other][2], microbatch, ready)
                    self.work.wait(task[action], *done)
                    self.work.wait(task[other], *done)

    def _send(
        self, replica: int, source: int, target: int, microbatch: int, after: list[int]
    ) -> list[int]:
        """A stage's tensor, from each device of a rank to its like on another."""
        found, size = self.places, self.job.share.boundary / self.places.tensor
        numbers = self.work.sends(
            self._devices(source, replica), self._devices(target, replica), size, after
        )
        ends = found.rank(source, replica), found.rank(target, replica)
        if size > 0:
            whole = size * len(numbers)
            self.sent.append(Sent(*ends, whole, f"mb={microbatch}", numbers))
        return numbers

    def _devices(self, stage: int, replica: int) -> range:
        """Those of a rank, by context and tensor: they stand next to one another."""
        first = self.places.device(stage, replica)
        return range(first, first + self.places.devices)

    def reduces(self, kind: str, size: float) -> None:
        """Every stage's gradients by a collective that begins on each rank when it is there."""
        found, each = self.places, algorithm(kind)
        plan = each.transfers(len(self._group()), found.beside())
        share = found.devices
        for action in np.flatnonzero(self.table.kind == REDUCE).tolist():
            stage, before = int(self.table.rank[action]), int(self.before[action])
            together: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
            for tensor in range(found.tensor):
                ready = [
                    task[before] if before != NOBODY else self.work.compute(0.0)
                    for task in self.task
                    for _ in range(found.context)
                ]
                done = carry(self.work, plan, found.group(stage, tensor), size, ready)
                for place, number in enumerate(done.done):
                    replica = place // found.context
                    self.work.wait(self.task[replica][action], number)
                for number, a, b in done.messages:
                    together[self._of(a // share), self._of(b // share)].append(number)
            name = f"task=gradients stage={int(self.table.stage[action])}"
            for (a, b), numbers in together.items():
                if a != b:
                    whole = sum(self.work.size[number] for number in numbers)
                    self.sent.append(Sent(a, b, whole, name, numbers))

    def _of(self, place: int) -> int:
        """The rank that stands `place`-th among all."""
        found = self.places
        if not found.by_stage:
            return place
        stage, replica = divmod(place, found.replicas)
        return found.rank(stage, replica)

    def together(self) -> None:
        """No optimiser before everybody is done with all else."""
        steps = self.table.kind == STEP
        rest = [t[a] for t in self.task for a in np.flatnonzero(~steps).tolist()]
        done = self.work.join(rest)
        for task in self.task:
            for action in np.flatnonzero(steps).tolist():
                self.work.wait(task[action], done)

    def times(self, played: Played) -> list[Timed]:
        """A transfer or a collective lasts from when its rank came to it."""
        shared = np.isin(self.table.kind, [REDUCE, *_codes(SENDS), *_codes(SENDS.values())])
        found = []
        for first, task in zip(self.first, self.task, strict=True):
            start = played.start[np.array(first, np.int64)].copy()
            stop = played.stop[np.array(task, np.int64)]
            there = np.where(self.before == NOBODY, 0.0, stop[np.maximum(self.before, 0)])
            start[shared] = there[shared]
            found.append(Timed(self.table, start, stop))
        return found


def _codes(kinds: Iterable[Kind]) -> list[int]:
    return [CODES[kind] for kind in kinds]
