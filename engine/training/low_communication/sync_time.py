"""Time of one synchronisation over a described link on which some are slower than others.

An all-reduce goes by its algorithm's own plan of rounds (`engine.distributed.collectives`): without
jitter it takes what `engine.hardware.collectives` says, a tree of no power of two at most that. A
message takes the link's time, times a log-normal factor of mean 1 (`jitter` is the standard
deviation of its logarithm): drawn for each message, or for each replica and synchronisation, whose
every message then takes as long (a straggler). All is drawn from a seed and averaged over trials.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine.distributed.collective import Collective
from engine.distributed.collectives.halving_doubling import HalvingDoubling
from engine.distributed.collectives.ring import Ring
from engine.distributed.collectives.tree import Tree
from engine.distributed.collectives.two_phase import TwoPhase
from engine.hardware.link import Link
from engine.training.low_communication.methods.noloco import drawn

TRIALS = 64
MEETINGS = 8  # rounds of pairs played one after another, so that who came late makes others late
ALL_REDUCES: tuple[Collective, ...] = (Ring(), Tree(), TwoPhase(), HalvingDoubling())
# Seconds of the messages between these sources and targets: [messages, trials].
Times = Callable[[np.ndarray, np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class Net:
    """A described network: one `link` out of each of `replicas`; `stragglers`: times vary by
    replica, not by message."""

    link: Link
    replicas: int
    jitter: float = 0.0
    stragglers: bool = False
    trials: int = TRIALS

    def times(self, chance: np.random.Generator) -> Times:
        """How long messages take from now on; replicas keep their factors, messages do not."""
        if self.stragglers:
            factor = self._factors(chance, self.replicas)
            return lambda source, target, seconds: (
                seconds * np.maximum(factor[source], factor[target])
            )
        return lambda source, target, seconds: seconds * self._factors(chance, len(source))

    def _factors(self, chance: np.random.Generator, count: int) -> np.ndarray:
        if self.jitter == 0:
            return np.ones((count, self.trials))
        shift = -self.jitter * self.jitter / 2
        return np.exp(chance.normal(shift, self.jitter, (count, self.trials)))


def by_collective(collective: Collective, net: Net, size: float, seed: int) -> float:
    """Seconds until the last replica has the mean of `size` bytes. Messages of a round that leave
    or reach one replica share its port."""
    times = net.times(np.random.default_rng(seed))
    ready = np.zeros((net.replicas, net.trials))
    port = ready.copy()  # when each may send again
    for pattern in collective.patterns(net.replicas, net.replicas):
        source, target = np.array(pattern.pairs).T
        by_source, by_target = _Grouped.of(source), _Grouped.of(target)
        seconds = net.link.seconds(max(by_source.most, by_target.most) * pattern.share * size)
        sending = 1 - net.link.latency / seconds  # the share of it in which the port is taken
        for _ in range(pattern.times):
            start, took = np.maximum(ready, port)[source], times(source, target, seconds)
            by_source.raise_to(port, start + sending * took)
            by_target.raise_to(ready, start + took)
    return float(ready.max(0).mean())


@dataclass(frozen=True)
class _Grouped:
    """Messages by the replica that they leave or reach; `most` of them at one."""

    order: np.ndarray
    replicas: np.ndarray
    first: np.ndarray
    most: int

    @classmethod
    def of(cls, replica: np.ndarray) -> "_Grouped":
        order = np.argsort(replica, kind="stable")
        replicas, first, counts = np.unique(replica[order], return_index=True, return_counts=True)
        return cls(order, replicas, first, int(counts.max()))

    def raise_to(self, times: np.ndarray, found: np.ndarray) -> None:
        """Each replica's `times` to the latest of its messages'."""
        latest = np.maximum.reduceat(found[self.order], self.first)
        times[self.replicas] = np.maximum(times[self.replicas], latest)


def by_best(net: Net, size: float, seed: int) -> tuple[str, float]:
    """The fastest of the all-reduces that fit so many replicas, and its seconds."""
    took = {
        each.kind: by_collective(each, net, size, seed)
        for each in ALL_REDUCES if each.fits(net.replicas, net.replicas)
    }  # fmt: skip
    best = min(took, key=took.__getitem__)
    return best, took[best]


def by_pairs(net: Net, size: float, seed: int, barrier: bool = False) -> float:
    """Seconds of a meeting of random pairs for a replica, the mean over several meetings in a row:
    a replica waits for its partner, who may come late from the one before. `barrier`: nobody goes
    on until all have met."""
    chance = np.random.default_rng(seed)
    ready = np.zeros((net.replicas, net.trials))
    for meeting in range(MEETINGS):
        order, times = drawn(seed, net.replicas, meeting), net.times(chance)
        even = net.replicas // 2 * 2
        one, other = order[:even:2], order[1:even:2]
        seconds = net.link.seconds(size)
        both = np.maximum(times(one, other, seconds), times(other, one, seconds))
        ready[one] = ready[other] = np.maximum(ready[one], ready[other]) + both
        if barrier:
            ready[:] = ready.max(0) + net.link.latency
    return float(ready.mean()) / MEETINGS
