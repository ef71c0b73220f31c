"""Cache transfers between replicas: keys and values of a prompt over a link, layer by layer.

A link end carries one transfer at a time, in each direction. Where it is sent layer by layer, each
layer leaves once it is computed, so the end of a transfer is bounded by the link or by the prompt.
"""

from typing import NamedTuple

from engine.fleet.faults import Faults
from engine.hardware.link import Link


class Sent(NamedTuple):
    """When a transfer begins and is done (seconds)."""

    start: float
    stop: float
    cut: bool = False  # a cut made it begin again


class Wires:
    """The ends of every replica's links, and until when each is busy."""

    def __init__(self, link: Link, bandwidth: float, layers: int, faults: Faults) -> None:
        self.link, self.layers, self.faults = link, layers, faults
        self.rate = bandwidth or link.bandwidth
        self._out: dict[int, float] = {}
        self._in: dict[int, float] = {}

    def send(
        self, source: int, target: int, size: float, ready: float, computing: float | None = None
    ) -> Sent:
        """`size` bytes, ready from `ready` on; `computing`: when the first layer was begun and the
        place for it was there, where layers are sent as they come."""
        free = max(self._out.get(source, 0.0), self._in.get(target, 0.0))
        whole, latency = size / self.rate, self.link.latency
        if computing is None:
            start = max(ready, free)
            stop = start + latency + whole
        else:
            layer = whole / self.layers
            start = max(computing + (ready - computing) / self.layers, free)
            stop = latency + max(start + whole, ready + layer)
        sent = self._past_cut(Sent(start, stop), latency + whole)
        self._out[source] = self._in[target] = sent.stop
        return sent

    def _past_cut(self, sent: Sent, seconds: float) -> Sent:
        """A transfer that a cut meets is sent again, whole, once the links are there."""
        begin, end = self.faults.cut_at, self.faults.cut_at + self.faults.cut_for
        if not self.faults.cut_for or sent.stop <= begin or sent.start >= end:
            return sent
        return Sent(sent.start, end + seconds, True)
