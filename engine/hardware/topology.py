"""Devices joined by channels that messages share: which of them a message holds, and how long it
takes before its first byte.

A channel is one direction of a link, a port or a bundle of links. Ranks are devices, numbered
from 0.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from engine.hardware.link import Link


@dataclass(frozen=True, slots=True)
class Channel:
    """One direction of something that carries bytes. `bandwidth`: bytes per second."""

    name: str
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Way:
    """What a message from one rank to another holds all the while (numbers of channels), and the
    seconds before its first byte."""

    channels: tuple[int, ...]
    latency: float


class Topology(ABC):
    """`ranks` devices and the channels between them."""

    ranks: int
    channels: tuple[Channel, ...]

    @abstractmethod
    def way(self, source: int, target: int) -> Way:
        """The way from one rank to another; from a rank to itself there is none to go."""

    def seconds(self, source: int, target: int, size: float) -> float:
        """A message of `size` bytes alone on its way; nothing sent takes no time."""
        way = self.way(source, target)
        if size <= 0 or not way.channels:
            return 0.0
        return way.latency + size / min(self.channels[c].bandwidth for c in way.channels)


class Switch(Topology):
    """Every rank has one port out and one in, each of the link's bandwidth."""

    def __init__(self, ranks: int, link: Link) -> None:
        self.ranks, self.link = ranks, link
        self.channels = tuple(
            Channel(f"device {rank} {end}", link.bandwidth)
            for rank in range(ranks)
            for end in ("out", "in")
        )

    def way(self, source: int, target: int) -> Way:
        if source == target:
            return Way((), 0.0)
        return Way((2 * source, 2 * target + 1), self.link.latency)


class Ring(Topology):
    """Every rank has a link to each of its two neighbours; others are reached through them."""

    def __init__(self, ranks: int, link: Link) -> None:
        self.ranks, self.link = ranks, link
        self.channels = tuple(
            Channel(f"device {rank} to {(rank + step) % ranks}", link.bandwidth)
            for rank in range(ranks)
            for step in (1, -1)
        )

    def way(self, source: int, target: int) -> Way:
        onward = (target - source) % self.ranks
        back = self.ranks - onward
        if onward <= back:
            held = tuple(2 * ((source + hop) % self.ranks) for hop in range(onward))
        else:
            held = tuple(2 * ((source - hop) % self.ranks) + 1 for hop in range(back))
        return Way(held, self.link.latency * len(held))
