"""Devices joined by channels that messages share: which of them a message holds, and how long it
takes before its first byte.

A channel is one direction of a link, a port or a bundle of links. Ranks are devices, numbered
from 0.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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


class Ways(NamedTuple):
    """The ways of many messages: channels of the n-th are `held[first[n] : first[n + 1]]`."""

    first: np.ndarray  # int64 [messages + 1]
    held: np.ndarray  # int64
    latency: np.ndarray  # seconds [messages]


class Topology(ABC):
    """`ranks` devices and the channels between them."""

    ranks: int
    channels: tuple[Channel, ...]

    @abstractmethod
    def way(self, source: int, target: int) -> Way:
        """The way from one rank to another; from a rank to itself there is none to go."""

    def ways(self, sources: np.ndarray, targets: np.ndarray) -> Ways:
        """The ways from each of `sources` to the target beside it."""
        found = [self.way(*pair) for pair in zip(sources.tolist(), targets.tolist(), strict=True)]
        counts = [len(way.channels) for way in found]
        held = [channel for way in found for channel in way.channels]
        latency = np.array([way.latency for way in found], np.float64)
        return Ways(starts(np.array(counts, np.int64)), np.array(held, np.int64), latency)

    def seconds(self, source: int, target: int, size: float) -> float:
        """A message of `size` bytes alone on its way; nothing sent takes no time."""
        way = self.way(source, target)
        if size <= 0 or not way.channels:
            return 0.0
        return way.latency + size / min(self.channels[c].bandwidth for c in way.channels)


def starts(counts: np.ndarray) -> np.ndarray:
    """Where each of several runs of so many begins, and the end."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


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
