"""How long replicas wait at one synchronisation over a described link whose times vary.

A message takes the link's time, times a log-normal factor of mean 1 (`jitter` is the standard
deviation of its logarithm); everything is drawn from a seed and averaged over trials.
"""

import numpy as np

from engine.hardware.link import Link

TRIALS = 64


def by_tree(link: Link, replicas: int, size: float, jitter: float, seed: int) -> float:
    """Seconds until the last replica has the mean: up a binary tree and down again, whole vectors.

    Rank r's children are 2r + 1 and 2r + 2; both of a node's messages come at once, so ports are
    taken to be no bottleneck (the tree's favour).
    """
    draw = _Draw(link, size, jitter, seed)
    ready = np.zeros((TRIALS, replicas))
    for child in range(replicas - 1, 0, -1):
        parent = (child - 1) // 2
        ready[:, parent] = np.maximum(ready[:, parent], ready[:, child] + draw.times())
    known = np.zeros((TRIALS, replicas))
    known[:, 0] = ready[:, 0]
    for child in range(1, replicas):
        known[:, child] = known[:, (child - 1) // 2] + draw.times()
    return float(known.max(1).mean())


def by_ring(link: Link, replicas: int, size: float, jitter: float, seed: int) -> float:
    """Seconds until the last has the mean: 2 (n - 1) rounds of shares, neighbours only waiting."""
    draw = _Draw(link, size / replicas, jitter, seed)
    ready = np.zeros((TRIALS, replicas))
    for _ in range(2 * (replicas - 1)):
        took = np.stack([draw.times() for _ in range(replicas)], 1)
        ready = np.maximum(ready, np.roll(ready, 1, axis=1) + took)
    return float(ready.max(1).mean())


def by_pairs(link: Link, replicas: int, size: float, jitter: float, seed: int) -> float:
    """Seconds a pair waits for one another's vectors, the mean over pairs: none waits for all."""
    draw = _Draw(link, size, jitter, seed)
    both = [np.maximum(draw.times(), draw.times()) for _ in range(max(1, replicas // 2))]
    return float(np.mean(both))


class _Draw:
    def __init__(self, link: Link, size: float, jitter: float, seed: int) -> None:
        self.seconds, self.jitter = link.seconds(size), jitter
        self.chance = np.random.default_rng(seed)

    def times(self) -> np.ndarray:
        """Seconds of one message in each trial."""
        if self.jitter == 0:
            return np.full(TRIALS, self.seconds)
        shift = -self.jitter * self.jitter / 2
        return self.seconds * np.exp(self.chance.normal(shift, self.jitter, TRIALS))
