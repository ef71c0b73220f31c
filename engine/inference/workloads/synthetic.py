"""Synthetic traffic: token numbers, lengths and arrivals drawn from a seed.

Token numbers come from a hash of (seed, stream, place), so that prompts which share a prefix in the
workload share equal tokens, and prompts of different streams share none but by chance.
"""

from collections.abc import Iterable

import numpy as np

from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.limits import check
from engine.inference.requests.request import Request

LONGEST = 10_000_000  # tokens of one prompt or answer
AT_ONCE = 1 << 22
SWUNG_AT_ONCE = 4096  # arrivals


class Lengths(Config):
    """A log-normal length in tokens, cut at both ends; `spread` 0 makes every one the median."""

    median: int = knob(256, "Half are shorter", low=1, high=LONGEST, unit="tokens", log=True)
    spread: float = knob(0.0, "Standard deviation of the logarithm", low=0.0, high=4.0)
    shortest: int = knob(1, "Cut below this", low=1, high=LONGEST, unit="tokens")
    longest: int = knob(LONGEST, "Cut above this", low=1, high=LONGEST, unit="tokens", log=True)

    def draw(self, random: np.random.Generator, count: int) -> np.ndarray:
        """`count` lengths, int64."""
        in_order(self.shortest, self.longest)
        drawn = self.median * np.exp(self.spread * random.standard_normal(count))
        return np.clip(np.rint(drawn), self.shortest, self.longest).astype(int)


def in_order(shortest: int, longest: int) -> None:
    """Raises BadInput where no length is between them."""
    if shortest > longest:
        raise BadInput(
            f"workload: shortest {shortest} is above longest {longest}; raise longest, or lower it"
        )


def hashed(seed: int, stream: np.ndarray | int, place: np.ndarray | int) -> np.ndarray:
    """uint64 hashes of (seed, stream, place), elementwise (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = np.asarray(stream, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ np.uint64(seed & (2**64 - 1))) * np.uint64(0xD1342543DE82EF95)
        x = x + np.asarray(place, np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def tokens(seed: int, stream: np.ndarray | int, place: np.ndarray | int, vocab: int) -> np.ndarray:
    """Token numbers for places of streams, int32 below `vocab`."""
    return (hashed(seed, stream, place) % np.uint64(vocab)).astype(np.int32)


def split(seed: int, lengths: np.ndarray, vocab: int, streams: np.ndarray) -> list[np.ndarray]:
    """One prompt for each length: the first `lengths[i]` tokens of stream `streams[i]`.

    Raises BadInput where they are more than a workload may hold.
    """
    affordable(int(lengths.sum()))
    found: list[np.ndarray] = []
    # A part at a time: a token takes ten times its size while it is made.
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths) // AT_ONCE)) + 1
    for few, whose in zip(np.split(lengths, cuts), np.split(streams, cuts), strict=True):
        ends = np.cumsum(few)
        place = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - few, few)
        found += np.split(tokens(seed, np.repeat(whose, few), place, vocab), ends[:-1])
    return found


def affordable(count: int) -> None:
    """Raises BadInput where so many tokens of prompts are more than a workload may hold."""
    check("workload", "tokens of prompts", count, "workload_tokens")


def held(requests: Iterable[Request]) -> list[Request]:
    """All of them; raises BadInput as soon as their prompts are more than a workload may hold."""
    found, count = [], 0
    for request in requests:
        count += len(request.prompt)
        affordable(count)
        found.append(request)
    return found


def arrivals(
    random: np.random.Generator, count: int, rate: float, shape: float = 1.0
) -> np.ndarray:
    """Seconds of `count` arrivals at `rate`, all at 0 where that is 0. Gaps between them are drawn
    of a gamma distribution of that shape: 1 is a Poisson process, less comes in bursts."""
    if rate <= 0:
        return np.zeros(count)
    if shape == 1.0:
        return np.cumsum(random.exponential(1.0 / rate, count))
    return np.cumsum(random.gamma(shape, 1.0 / (rate * shape), count))


def swung(times: np.ndarray, swing: float, period: float) -> np.ndarray:
    """Arrivals (s) of a steady rate, moved so that it goes with 1 - swing cos(2 pi t / period)."""
    if not swing or not len(times):
        return times
    found = []
    for few in np.split(times, range(SWUNG_AT_ONCE, len(times), SWUNG_AT_ONCE)):
        # Only periods that something arrives in: there may be as many others as one likes.
        cells = np.unique(np.floor(few / period))[:, None] * 256 + np.arange(-1, 258)
        t = np.unique(cells[cells >= 0]) * (period / 256)
        at = t - swing * period / (2 * np.pi) * np.sin(2 * np.pi * t / period)
        found.append(np.interp(few, at, t))
    return np.concatenate(found)
