"""Cluster placement: the described cluster a plan runs on, how many replicas, who neighbours whom.

With a cluster named, transfers between ranks and the gradients' all-reduce hold its ports, adapters
and switches, and share them with all that is in flight.
"""

from dataclasses import dataclass
from typing import Literal

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.hardware.cluster import Cluster, ClusterTopology, cluster

GROUP = "cluster"
AllReduce = Literal[
    "fastest", "ring", "tree", "halving_doubling", "hierarchical", "star", "one_phase", "two_phase"
]


class OnCluster(Config):
    """Off where no cluster is named: `wires` then, every transfer alone on its own."""

    name: str = knob(
        "", "a cluster with a sheet, whose links all transfers share (selene, llama3-roce, "
        "ethernet-pods); empty: `wires`, each transfer alone", group=GROUP,
    )  # fmt: skip
    replicas: int = knob(0, "data-parallel replicas beside one another; 0: as `passes` says",
                         low=0, high=512, group=GROUP)  # fmt: skip
    neighbours: Literal["replicas", "stages"] = knob(
        "replicas", "who stand next to one another: a stage's replicas, or a replica's stages",
        group=GROUP,
    )  # fmt: skip
    all_reduce: AllReduce = knob("fastest", "algorithm of the gradients' all-reduce", group=GROUP)
    adapters: int = knob(0, "network adapters of a node; 0: as the sheet says", low=0, high=1024,
                         group=GROUP)  # fmt: skip
    oversubscription: float = knob(0.0, "of the ways between blocks; 0: as the sheet says",
                                   low=0.0, high=1000.0, group=GROUP)  # fmt: skip

    def described(self) -> Cluster:
        """The sheet with what is turned here. Raises BadInput for a name without one."""
        found = cluster(self.name)
        changed: dict[str, object] = {}
        if self.adapters:
            changed["adapters"] = self.adapters
        if self.oversubscription:
            changed["oversubscription"] = max(1.0, self.oversubscription)
        if found.node % (self.adapters or 1) and (self.adapters or 1) % found.node:
            raise BadInput(
                f"cluster {self.name}: {found.node} devices of a node do not divide among "
                f"{self.adapters} adapters; take a divisor"
            )
        return found.model_copy(update=changed)


@dataclass(frozen=True)
class Places:
    """Where everybody stands: `stages` × `replicas` ranks, each of `context` × `tensor` devices."""

    stages: int
    replicas: int
    context: int
    tensor: int
    by_stage: bool  # replicas of a stage next to one another; else stages of a replica
    topology: ClusterTopology

    @property
    def devices(self) -> int:
        """Of one rank."""
        return self.context * self.tensor

    def rank(self, stage: int, replica: int) -> int:
        """The number of a rank of the pipeline, as lanes count them."""
        return replica * self.stages + stage

    def device(self, stage: int, replica: int, context: int = 0, tensor: int = 0) -> int:
        """The device that has this part of a stage."""
        if self.by_stage:
            rank = stage * self.replicas + replica
        else:
            rank = replica * self.stages + stage
        return (rank * self.context + context) * self.tensor + tensor

    def next_tensor(self) -> list[int]:
        """Of each device of a rank, by place, the next one of its tensor ranks, in a ring."""
        c, t = self.context, self.tensor
        return [at * t + (part + 1) % t for at in range(c) for part in range(t)]

    def next_context(self) -> list[int]:
        """The same of its context ranks."""
        c, t = self.context, self.tensor
        return [(at + 1) % c * t + part for at in range(c) for part in range(t)]

    def group(self, stage: int, tensor: int) -> list[int]:
        """The devices that sum this part of a stage's gradients."""
        return [
            self.device(stage, replica, context, tensor)
            for replica in range(self.replicas)
            for context in range(self.context)
        ]

    def beside(self) -> int:
        """How many of a group, one after another, share a node; 1 where nodes hold unlike many."""
        return beside(self.group(0, 0), self.topology.cluster.node)


def beside(members: list[int], node: int) -> int:
    """How many members, one after another, share a node of so many devices; 1 where nodes hold
    unlike many of them."""
    homes = [member // node for member in members]
    counts = [homes.count(home) for home in dict.fromkeys(homes)]
    whole = homes == sorted(homes) and len(set(counts)) == 1
    return counts[0] if whole else 1


def places(asked: OnCluster, stages: int, replicas: int, context: int, tensor: int) -> Places:
    """Raises BadInput where the cluster has fewer devices."""
    found = asked.described()
    topology = found.topology(stages * replicas * context * tensor)
    by_stage = asked.neighbours == "replicas"
    return Places(stages, replicas, context, tensor, by_stage, topology)
