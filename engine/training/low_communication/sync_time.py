"""Time of one synchronisation over a described link whose times vary from message to message.

An all-reduce goes by its algorithm's own plan of rounds (`engine.distributed.collectives`): without
jitter it takes what `engine.hardware.collectives` says, a tree of no power of two at most that. A
message takes the link's time, times a log-normal factor of mean 1 (`jitter` is the standard
deviation of its logarithm); everything is drawn from a seed and averaged over trials.
"""

import numpy as np

from engine.distributed.collective import Collective
from engine.distributed.collectives.ring import Ring
from engine.distributed.collectives.tree import Tree
from engine.hardware.link import Link

TRIALS = 64


def by_collective(
    collective: Collective, link: Link, replicas: int, size: float, jitter: float, seed: int
) -> float:
    """Seconds until the last replica has the mean of `size` bytes. Messages of a round that reach
    or leave one replica come at once: ports are taken to be no bottleneck."""
    chance = np.random.default_rng(seed)
    ready = np.zeros((replicas, TRIALS))
    for pattern in collective.patterns(replicas, replicas):
        source, target = np.array(pattern.pairs).T
        seconds = link.seconds(pattern.share * size)
        for _ in range(pattern.times):
            arrived = ready[source] + _times(chance, seconds, jitter, len(source))
            after = ready.copy()
            np.maximum.at(after, target, arrived)
            ready = after
    return float(ready.max(0).mean())


def by_tree(link: Link, replicas: int, size: float, jitter: float, seed: int) -> float:
    """Up a binomial tree and down again, whole vectors."""
    return by_collective(Tree(), link, replicas, size, jitter, seed)


def by_ring(link: Link, replicas: int, size: float, jitter: float, seed: int) -> float:
    """2 (n - 1) rounds of shares, neighbours only waiting."""
    return by_collective(Ring(), link, replicas, size, jitter, seed)


def by_pairs(link: Link, replicas: int, size: float, jitter: float, seed: int) -> float:
    """Seconds a pair waits for one another's vectors, the mean over pairs: none waits for all."""
    pairs, chance = max(1, replicas // 2), np.random.default_rng(seed)
    both = [_times(chance, link.seconds(size), jitter, 2).max(0) for _ in range(pairs)]
    return float(np.mean(both))


def _times(chance: np.random.Generator, seconds: float, jitter: float, messages: int) -> np.ndarray:
    """[messages, TRIALS]: seconds of each message of `seconds` on average."""
    if jitter == 0:
        return np.full((messages, TRIALS), seconds)
    shift = -jitter * jitter / 2
    return np.asarray(seconds * np.exp(chance.normal(shift, jitter, (messages, TRIALS))))
