"""Collectives of a described run: how long its ranks' messages take, within a node and across.

Within a node the operator cost model tells (`engine.hardware.cost.curves.collective`); across nodes
a ring visits each node once, and groups that run at the same time share a node's adapters.
"""

import math
from dataclasses import dataclass

import numpy as np

from engine.hardware.cost.constants import Constants
from engine.hardware.cost.curves import ROUNDS, collective
from engine.hardware.device import Device
from engine.hardware.link import Link, link
from engine.training.step_time.described import OnDevices


@dataclass(frozen=True, slots=True)
class Wires:
    """What joins the devices of a run. `reached`: share of adapters' rate that transfers get."""

    device: Device
    found: Constants
    near: Link | None
    far: Link
    node: int
    adapters: int
    reached: float

    @classmethod
    def of(cls, cluster: OnDevices, found: Constants, reached: float) -> "Wires":
        joined = cluster.joined()
        node = min(joined, cluster.devices)
        near = cluster.near() if cluster.devices > 1 and node > 1 else None
        sheet, far = cluster.sheet(), link(cluster.network)
        return cls(sheet, found, near, far, node, cluster.adapters or node, reached)

    @property
    def out(self) -> float:
        """Bytes per second of one device's share of its node's adapters."""
        return self.adapters * self.far.bandwidth * self.reached / self.node

    def seconds(
        self, name: str, ranks: int, inner: int, size: float, crossing: float = 1.0
    ) -> float:
        """A collective over `size` bytes among `ranks` devices that stand `inner` apart, while the
        `inner` groups beside it do the same.

        `size`: what a rank holds before an all-reduce, reduce-scatter or all-to-all and after an
        all-gather; `crossing`: the share of what an all-to-all has for other nodes that is sent.
        """
        if ranks == 1 or size <= 0:
            return 0.0
        inside = max(1, min(ranks, self.node // inner)) if self.near is not None else 1
        within = self._within(name, inside, size)
        if inside >= ranks:
            return within
        nodes = -(-ranks // inside)
        far = ROUNDS[name] * (nodes - 1)
        if name == "all_to_all":
            wire = crossing * size * (ranks - inside) / ranks / self.out
        else:
            wire = far / nodes * size / (self.out * inside)
        steps = self.found.collective.step * self.found.slower(self.device)
        delay = far * self.far.latency + ROUNDS[name] * (ranks - nodes) * steps
        return delay + max(wire, within)

    def crossing(
        self, ranks: int, inner: int, routed: int, groups: tuple[int, int] = (1, 1)
    ) -> float:
        """Share of the copies for other nodes that is left where a token crosses to each node once,
        its `routed` experts being anywhere among `ranks`; in so many of all groups of experts
        alone, where `groups` says so (chosen, all)."""
        inside = max(1, min(ranks, self.node // inner)) if self.near is not None else 1
        nodes = -(-ranks // inside)
        if nodes == 1:
            return 1.0
        return float(nodes * (1 - missed(nodes, routed, *groups)) / routed)

    def _within(self, name: str, inside: int, size: float) -> float:
        if inside == 1 or self.near is None:
            return 0.0
        parts = collective(self.device, self.near, self.found, name, inside, size)
        return float(np.asarray(parts.seconds).reshape(-1)[0])

    def message(self, inner: int, size: float) -> float:
        """`size` bytes from one device to another that stands `inner` away."""
        if inner < self.node and self.near is not None:
            share = self.found.collective.bandwidth
            return self.near.latency + size / (self.near.bandwidth * share)
        return self.far.latency + size / self.out


def missed(nodes: int, routed: int, chosen: int, groups: int) -> float:
    """Probability that a node has none of a token's `routed` experts, which lie in `chosen` of all
    `groups` of experts (DeepSeek-V3, arXiv 2412.19437, section 2.1.2), equally many in each."""
    here = groups // nodes  # groups of a node
    if chosen >= groups or here * nodes != groups:
        return float((1 - 1 / nodes) ** routed)
    ways = [math.comb(here, n) * math.comb(groups - here, chosen - n) for n in range(chosen + 1)]
    none = [(1 - n / chosen) ** routed for n in range(chosen + 1)]
    return sum(w * x for w, x in zip(ways, none, strict=True)) / math.comb(groups, chosen)
