"""A cluster as facts: nodes of devices, their network adapters, and the switches between them.

Facts come from `datasets/clusters/*.toml`, each with its source. A node's devices share a switch
of their own; an adapter serves one device or several; a block is the nodes that are joined without
oversubscription, and its way to other blocks is one bundle of links.
"""

import numpy as np
from pydantic import model_validator

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.paths import dataset
from engine.hardware.device import Texts
from engine.hardware.link import Link, link
from engine.hardware.sheet import named, sheets
from engine.hardware.topology import Channel, Topology, Way, Ways, starts

FOLDER = "clusters"


class Cluster(Config):
    """What a cluster is built of; how much of it is used is the asker's to say."""

    slug: str = knob("", "file name of the sheet")
    name: str = knob(doc="as its owner calls it")
    device: str = knob(doc="its devices, by their sheet's name")
    node: int = knob(doc="devices in a node", low=1, high=1024)
    scale_up: str = knob(doc="each device's link to its node's switch, by its sheet's name")
    adapters: int = knob(doc="network adapters of a node", low=1, high=1024)
    network: str = knob(doc="each adapter's link, by its sheet's name")
    nodes: int = knob(doc="nodes there are", low=1, high=1 << 20)
    block: int = knob(doc="nodes joined without oversubscription", low=1, high=1 << 20)
    oversubscription: float = knob(
        1.0, "bandwidth of a block's adapters over that of its way out", low=1.0, high=1000.0
    )
    hop: float = knob(0.0, "more latency between blocks", low=0.0, high=1.0, unit="s")
    reached: float = knob(1.0, "share of a line's rate that transfers reach", low=0.01, high=1.0)
    sources: Texts = knob(make=dict, doc="where each fact comes from, by field")

    @model_validator(mode="after")
    def _divides(self) -> "Cluster":
        if self.node % self.adapters and self.adapters % self.node:
            raise ValueError(
                f"{self.node} devices do not divide among {self.adapters} adapters of a node"
            )
        return self

    @property
    def devices(self) -> int:
        return self.node * self.nodes

    def topology(self, ranks: int, **changes: float) -> "ClusterTopology":
        """The first `ranks` devices of it. `changes`: facts to take in place of the sheet's.

        Raises BadInput where it has fewer.
        """
        here = self.model_copy(update=changes) if changes else self
        if ranks > here.devices:
            raise BadInput(
                f"cluster {self.slug or self.name}: {ranks:,} devices asked for, it has "
                f"{here.devices:,}; take fewer or another cluster"
            )
        return ClusterTopology(here, ranks)


class ClusterTopology(Topology):
    """Channels: each device's port out and in, each adapter's, each block's."""

    def __init__(self, cluster: Cluster, ranks: int) -> None:
        self.cluster, self.ranks = cluster, ranks
        self.near, self.far = (
            _as_reached(link(name), cluster.reached) for name in (cluster.scale_up, cluster.network)
        )
        self.nodes = -(-ranks // cluster.node)
        self.blocks = -(-self.nodes // cluster.block)
        ports = [(f"device {n}", self.near.bandwidth) for n in range(self.nodes * cluster.node)]
        adapters = [
            (f"node {n} adapter {a}", self.far.bandwidth)
            for n in range(self.nodes)
            for a in range(cluster.adapters)
        ]
        out = cluster.block * cluster.adapters * self.far.bandwidth / cluster.oversubscription
        blocks = [(f"block {n}", out) for n in range(self.blocks)]
        self.channels = tuple(
            Channel(f"{name} {end}", bandwidth)
            for name, bandwidth in (*ports, *adapters, *blocks)
            for end in ("out", "in")
        )
        self._adapters = len(ports)
        self._blocks = len(ports) + len(adapters)

    def way(self, source: int, target: int) -> Way:
        if source == target:
            return Way((), 0.0)
        here, there = source // self.cluster.node, target // self.cluster.node
        if here == there:
            return Way((2 * source, 2 * target + 1), self.near.latency)
        leaving, coming = 2 * self._adapter(source), 2 * self._adapter(target) + 1
        mine, theirs = here // self.cluster.block, there // self.cluster.block
        if mine == theirs:
            return Way((leaving, coming), self.far.latency)
        up, down = 2 * (self._blocks + mine), 2 * (self._blocks + theirs) + 1
        return Way((leaving, up, down, coming), self.far.latency + self.cluster.hop)

    def ways(self, sources: np.ndarray, targets: np.ndarray) -> Ways:
        here, there = sources // self.cluster.node, targets // self.cluster.node
        mine, theirs = here // self.cluster.block, there // self.cluster.block
        near, within, nowhere = here == there, mine == theirs, sources == targets
        leaving = np.where(near, 2 * sources, 2 * self._adapters_of(sources))
        coming = 1 + np.where(near, 2 * targets, 2 * self._adapters_of(targets))
        up, down = 2 * (self._blocks + mine), 2 * (self._blocks + theirs) + 1
        held = np.stack([leaving, up, down, coming], 1)
        holds = np.stack([~nowhere, ~within, ~within, ~nowhere], 1)
        far = self.far.latency + np.where(within, 0.0, self.cluster.hop)
        latency = np.where(nowhere, 0.0, np.where(near, self.near.latency, far))
        return Ways(starts(holds.sum(1)), held[holds].astype(np.int64), latency)

    def _adapters_of(self, devices: np.ndarray) -> np.ndarray:
        node, place = np.divmod(devices, self.cluster.node)
        adapter = place * self.cluster.adapters // self.cluster.node
        found: np.ndarray = self._adapters + node * self.cluster.adapters + adapter
        return found

    def _adapter(self, device: int) -> int:
        node, place = divmod(device, self.cluster.node)
        adapter = place * self.cluster.adapters // self.cluster.node
        return self._adapters + node * self.cluster.adapters + adapter


def _as_reached(line: Link, share: float) -> Link:
    return line.model_copy(update={"bandwidth": line.bandwidth * share})


def clusters() -> list[str]:
    """Names of all clusters with a sheet."""
    return sheets(dataset(FOLDER))


def cluster(name: str) -> Cluster:
    """The cluster of that name, such as `selene`. Raises BadInput listing the known ones."""
    return named(Cluster, dataset(FOLDER), name)
