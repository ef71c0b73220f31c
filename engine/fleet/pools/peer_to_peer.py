"""Peer-to-peer pools (CloudMatrix-Infer, arXiv 2506.12708): prefill, decode and caching apart, each
reached by the others alike, so that a router need not know where a prompt's cache lies."""

from typing import Literal

from engine.core.config import knob
from engine.fleet.pools.pools import Reach, Role
from engine.fleet.pools.prefill_decode import PrefillDecode
from engine.inference.executors.modelled import Modelled
from engine.inference.executors.wide_experts import WideExperts


class PeerToPeer(PrefillDecode):
    """Prompts on some replicas, answers on others, and memory of all nodes as one cache beside."""

    kind: Literal["peer_to_peer"] = "peer_to_peer"  # type: ignore[assignment]
    cache_pages: int = knob(
        100_000, "Pages of the pooled memory", low=1, high=1 << 22, log=True, group="cache"
    )
    plane: str = knob(
        "unified-bus-memory",
        "Link of each device to that memory, by its sheet",
        group="cache",
        called="Link to pooled memory",
    )
    plane_bandwidth: float = knob(
        0.0, "Of that link in place of its sheet's; 0: the sheet's", low=0.0, high=1e15, unit="B/s",
        group="cache",
    )  # fmt: skip
    reach: Literal["everybody", "writer"] = knob(
        "everybody", "Who finds what was kept: everybody, or the replica alone that wrote it",
        group="cache", called="Cached pages are found by")  # fmt: skip
    cache_fault: Literal["none", "neighbour"] = knob(
        "none", "What goes wrong: neighbour, a replica asks for pages under the next one's number",
        group="faults",
    )  # fmt: skip
    decode_dies: int = knob(
        320,
        "Devices that share experts where answers are computed",
        low=1,
        high=8192,
        called="Devices that decode",
    )
    decode_own: int = knob(
        32, "Of those, devices whose requests a decoding replica has", low=1, high=8192
    )

    def serving(self, role: Role, executor: Modelled) -> Modelled:
        found = super().serving(role, executor)
        if role != "decode" or not isinstance(found, WideExperts):
            return found
        return found.model_copy(update={"dies": self.decode_dies, "own": self.decode_own})

    def pooled(self) -> tuple[int, str, float, Reach]:
        reach: Reach = "neighbour" if self.cache_fault == "neighbour" else self.reach
        return self.cache_pages, self.plane, self.plane_bandwidth, reach
