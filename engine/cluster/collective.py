"""Knobs of one collective on a described cluster, and what its algorithms take by size."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.distributed.channel import Fault
from engine.distributed.channels.shared_memory import MemoryHB, OverMemory
from engine.distributed.collective import Collective, Round, Transfers
from engine.distributed.flows.collective_work import algorithm, algorithms, times
from engine.hardware.cluster import Cluster, cluster
from engine.hardware.topology import Channel, Topology, Way
from engine.training.pipeline.cluster import beside

Operation = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"]
Algorithm = Literal[
    "fastest", "one_phase", "two_phase", "ring", "tree", "halving_doubling", "hierarchical", "star",
    "gather_ring", "scatter_ring", "shifts",
]  # fmt: skip
ClockFault = Literal["none", "unshared", "synchronous"]
CURVES, REAL = "sizes", "real ranks"
MOST_PLAYED = 200_000  # messages of one collective


class CollectiveConfig(Config):
    """One collective among the first devices of a cluster."""

    cluster: str = knob("selene", "a cluster with a sheet: selene, llama3-roce, ethernet-pods")
    ranks: int = knob(16, "devices that take part", low=2, high=1024)
    adapters: int = knob(0, "network adapters of a node; 0: as the sheet says", low=0, high=64)
    operation: Operation = knob("all_reduce", "what they do together")
    algorithm: Algorithm = knob("fastest", "whose messages are played one by one")
    size: float = knob(1e6, "bytes of the tensor that is played", low=8.0, high=1e12, unit="B",
                       log=True)  # fmt: skip
    smallest: float = knob(1e3, "where the curves begin", low=8.0, high=1e12, unit="B", log=True,
                           group=CURVES)  # fmt: skip
    largest: float = knob(1e9, "where they end", low=8.0, high=1e12, unit="B", log=True,
                          group=CURVES)  # fmt: skip
    points: int = knob(19, "sizes between them", low=2, high=200, group=CURVES)
    launch: float = knob(7.9e-6, "a kernel's launch, paid once by any program of puts and signals "
                         "(as fitted beside NVLink 3's latency)", low=0.0, high=1.0, unit="s",
                         group=CURVES)  # fmt: skip
    clock_fault: ClockFault = knob(
        "none", "What goes wrong on the clock: each message has its port to itself, or a put "
        "returns once it has arrived", group=CURVES,
    )  # fmt: skip
    real: bool = knob(False, "carry the plan out on real ranks of this machine, too", group=REAL)
    channel: Choice[OverMemory] = knob(make=MemoryHB, doc="what real ranks' puts go by")
    fault: Fault = knob(
        "none", "What goes wrong on rank 0: it signals before it puts, waits for one signal too "
        "few, or puts a number beside the place", group=REAL,
    )  # fmt: skip
    length: int = knob(1003, "numbers of the real ranks' tensor", low=1, high=1 << 22, group=REAL)
    left_out: int = knob(-1, "round that is left out, which is wrong (-1: none)", low=-1,
                         high=4096, group=REAL)  # fmt: skip
    limit: float = knob(120.0, "real ranks are ended after", low=1.0, high=3600.0, unit="s",
                        group=REAL)  # fmt: skip

    def described(self) -> Cluster:
        """The sheet with what is turned here. Raises BadInput."""
        found = cluster(self.cluster)
        if not self.adapters:
            return found
        if found.node % self.adapters and self.adapters % found.node:
            raise BadInput(
                f"cluster {self.cluster}: {found.node} devices of a node do not divide among "
                f"{self.adapters} adapters; take a divisor"
            )
        return found.model_copy(update={"adapters": self.adapters})

    def topology(self) -> Topology:
        found = self.described().topology(self.ranks)
        return Unshared(found) if self.clock_fault == "unshared" else found

    def node(self) -> int:
        """How many of the ranks, one after another, share a node; 1 where nodes have unlike many.
        All of them on a single node."""
        found = beside(list(range(self.ranks)), self.described().node)
        return min(found, self.ranks)

    def sizes(self) -> np.ndarray:
        """Bytes, evenly spaced by their logarithm. Raises BadInput where they do not grow."""
        if self.smallest >= self.largest:
            raise BadInput(
                f"sizes from {self.smallest:g} to {self.largest:g} B: the largest has to be larger"
            )
        return np.geomspace(self.smallest, self.largest, self.points)


class Unshared(Topology):
    """A fault: every pair of ranks has the way between them to itself."""

    def __init__(self, true: Topology) -> None:
        self.ranks, self._true = true.ranks, true
        pairs = [(a, b) for a in range(self.ranks) for b in range(self.ranks)]
        self.channels = tuple(Channel(f"{a} to {b}", self._bandwidth(a, b)) for a, b in pairs)

    def _bandwidth(self, source: int, target: int) -> float:
        held = self._true.way(source, target).channels
        return min((self._true.channels[each].bandwidth for each in held), default=1.0)

    def way(self, source: int, target: int) -> Way:
        own = () if source == target else (source * self.ranks + target,)
        return Way(own, self._true.way(source, target).latency)


@dataclass(frozen=True)
class Compared:
    """`seconds` [algorithms, sizes] by kind."""

    sizes: np.ndarray
    seconds: dict[str, np.ndarray]

    def fastest(self) -> list[str]:
        """The algorithm of each size."""
        kinds = list(self.seconds)
        table = np.array([self.seconds[kind] for kind in kinds])
        return [kinds[place] for place in table.argmin(0).tolist()]

    def chosen(self) -> np.ndarray:
        """Seconds where the fastest is taken for each size."""
        return np.array(list(self.seconds.values())).min(0)

    def crossings(self) -> list[tuple[str, float, float]]:
        """(algorithm, first size, last size) in order: who is the fastest from where to where."""
        found: list[tuple[str, float, float]] = []
        for kind, size in zip(self.fastest(), self.sizes.tolist(), strict=True):
            if found and found[-1][0] == kind:
                found[-1] = (kind, found[-1][1], size)
            else:
                found.append((kind, size, size))
        return found


def compared(config: CollectiveConfig) -> Compared:
    """Every algorithm that fits at every size, each alone on the cluster."""
    topology, node, sizes = config.topology(), config.node(), config.sizes()
    members = [list(range(config.ranks))]
    rows = [times(topology, config.operation, members, node, size) for size in sizes.tolist()]
    kinds = [kind for kind in algorithms(config.operation) if kind in rows[0]]
    return Compared(sizes, {kind: np.array([row[kind] for row in rows]) for kind in kinds})


def played(config: CollectiveConfig) -> Collective:
    """The algorithm whose messages are played. Raises BadInput where it is another operation's or
    does not fit."""
    kind, node = config.algorithm, config.node()
    if kind == "fastest":
        took = times(config.topology(), config.operation, [list(range(config.ranks))], node,
                     config.size)  # fmt: skip
        return algorithm(next(iter(took)))
    found = algorithm(kind)
    if found.operation != config.operation:
        known = ", ".join(algorithms(config.operation))
        raise BadInput(f"algorithm {kind}: no {config.operation}; one of: fastest, {known}")
    found.refuse(config.ranks, node)
    most = sum(len(each.pairs) * each.times for each in found.patterns(config.ranks, node))
    if most > MOST_PLAYED:
        raise BadInput(
            f"algorithm {kind}: {most:,} messages among {config.ranks} ranks, at most "
            f"{MOST_PLAYED:,} are played; take fewer ranks"
        )
    return found


def whole(config: CollectiveConfig, each: Collective) -> Transfers:
    """The plan, without the round that is to be left out."""
    plan = each.transfers(config.ranks, config.node())
    if config.left_out < 0:
        return plan
    rounds: list[Round] = list(plan.rounds)
    del rounds[config.left_out : config.left_out + 1]
    return Transfers(plan.pieces, tuple(rounds), plan.owned, plan.original)
