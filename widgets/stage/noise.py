"""Intervals of the differences between runs: the bootstrap over requests (Efron, 1979), paired
where both runs served the same ones; of rates over stretches of each run's time.

In come the requests of two runs; out goes the 95% interval of the second's figure over the first's.
It is of one run each: how much a figure hangs on which requests came, not what a second run of the
same, or another seed, would give.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from engine.core.log import Log
from engine.core.measure import LATENCIES, Requests, by_request

DRAWS = 1000
LEAST_DRAWS = 200  # of runs with very many requests
WORK = 400_000  # requests drawn in all, at most, as long as that leaves enough draws
TAIL = 5  # requests beyond a quantile, on either side, below which nothing is said of it
STRETCHES = 20  # of equal length, that a run's time is cut into
EACH = 2  # events a stretch has on average, below which nothing is said of their rate
SAME_TIME = 1e-3  # seconds by which arrivals of the same request may differ
QUANTILES = {"p50": 0.5, "p99": 0.99}
BEYOND, WITHIN, FEW, NONE = "beyond noise", "within noise", "too few to say", "one figure of a run"


@dataclass(frozen=True)
class Noise:
    """Whether a ratio differs from 1 by more than chance. `low`, `high`: its 95% interval, NaN
    where none can be told, and `word` says why. `over`: what was drawn."""

    word: str
    low: float = float("nan")
    high: float = float("nan")
    over: str = ""

    @property
    def mark(self) -> str:
        """▲ more, ▼ less, ≈ within noise, · nothing to say."""
        if self.word == BEYOND:
            return "▲" if self.low > 1 else "▼"
        return "≈" if self.word == WITHIN else "·"


def noises(first: Log, other: Log) -> dict[str, Noise]:
    """Measure -> how sure its ratio `other` over `first` is, for measures that are a quantile or a
    rate over many requests. Seeded: the same logs give the same intervals."""
    a = by_request(first)
    b = _ordered(by_request(other), a.names)
    paired = same_requests(first, other, a, b)
    found: dict[str, Noise] = {}
    for name in LATENCIES:
        values = a.latencies[name], b.latencies[name]
        least = min(map(_known, values))
        draw = _draws(*values, paired) if least else None
        for title, q in QUANTILES.items():
            few = draw is None or least * min(q, 1 - q) < TAIL
            over = "the same requests" if paired else "requests"
            found[f"{name.replace('_', ' ')}, {title}"] = (
                Noise(FEW) if few or draw is None else _judged(*draw(q), over)
            )
    found["tokens per second"] = _rates(a.tokens, b.tokens, a.begun, b.begun)
    found["requests per second"] = _rates(a.ended, b.ended, a.begun, b.begun)
    return found


def _ordered(b: Requests, names: tuple[str, ...]) -> Requests:
    """The same requests in the order of `names`; as they were where they have other names."""
    if b.names == names or set(b.names) != set(names):
        return b
    place = {name: i for i, name in enumerate(b.names)}
    order = np.array([place[name] for name in names])
    latencies = {name: values[order] for name, values in b.latencies.items()}
    return replace(b, names=names, arrivals=b.arrivals[order], latencies=latencies)


def same_requests(first: Log, other: Log, a: Requests, b: Requests) -> bool:
    """Whether both logs are of the same requests under the same names: their seed and what was
    asked agree, or where no knobs tell of that, every arrival does."""
    if a.names != b.names:
        return False
    heads = first.opened, other.opened
    if heads[0] is None or heads[1] is None or heads[0].seed != heads[1].seed:
        return False
    asked = [head.config.get("workload") for head in heads if head is not None]
    if None not in asked:
        return bool(asked[0] == asked[1])
    return bool(np.allclose(a.arrivals, b.arrivals, atol=SAME_TIME, rtol=0, equal_nan=True))


def _known(values: np.ndarray) -> int:
    return int(np.isfinite(values).sum())


Ratios = tuple[np.ndarray, np.ndarray]


def _draws(a_N: np.ndarray, b_M: np.ndarray, paired: bool) -> Callable[[float], Ratios]:
    """A function from a quantile to that quantile of each draw of requests, of both runs."""
    if not paired:
        a_N, b_M = a_N[np.isfinite(a_N)], b_M[np.isfinite(b_M)]
    chance = np.random.default_rng(0)
    most = max(len(a_N), len(b_M), 1)
    rows = max(LEAST_DRAWS, min(DRAWS, WORK // most)) if min(len(a_N), len(b_M)) else 0
    step = max(1, WORK // most)
    wanted = tuple(QUANTILES.values())
    drawn: list[Ratios] = [(np.empty((0, len(wanted))), np.empty((0, len(wanted))))]
    for start in range(0, rows, step):
        count = min(step, rows - start)
        counts = _counts(chance, count, len(a_N))
        others = counts if paired else _counts(chance, count, len(b_M))
        drawn.append((quantiles(a_N, counts, wanted), quantiles(b_M, others, wanted)))

    def of(q: float) -> Ratios:
        place = wanted.index(q)
        a_R, b_R = (np.concatenate(part)[:, place] for part in zip(*drawn, strict=True))
        return a_R, b_R

    return of


def _counts(chance: np.random.Generator, rows: int, size: int) -> np.ndarray:
    """[rows, size]: how often each of `size` requests is in each draw of so many."""
    places = chance.integers(0, size, (rows, size)) + size * np.arange(rows)[:, None]
    return np.bincount(places.ravel(), minlength=rows * size).reshape(rows, size)


def quantiles(values_N: np.ndarray, counts_RN: np.ndarray, wanted: tuple[float, ...]) -> np.ndarray:
    """[R, wanted]: quantiles of values that each row has so often, between the two nearest; NaNs
    count for nothing."""
    order = np.argsort(values_N)[: _known(values_N)]  # NaNs last
    sorted_K, below_RK = values_N[order], np.cumsum(counts_RN[:, order], axis=1)
    last_R = below_RK[:, -1] - 1
    found = []
    for q in wanted:
        at_R = q * np.maximum(last_R, 0)
        low_R = np.floor(at_R)
        ends = [
            sorted_K[(below_RK > np.minimum(k_R, last_R)[:, None]).argmax(axis=1)]
            for k_R in (low_R, low_R + 1)
        ]
        value_R = ends[0] + (ends[1] - ends[0]) * (at_R - low_R)
        found.append(np.where(last_R < 0, np.nan, value_R))
    return np.stack(found, axis=1)


def _rates(a: np.ndarray, b: np.ndarray, a_begun: float, b_begun: float) -> Noise:
    """Of events per second: stretches of each run's time are drawn."""
    if min(len(a), len(b)) < STRETCHES * EACH:
        return Noise(FEW)
    chance = np.random.default_rng(0)
    means = []
    for times, begun in ((a, a_begun), (b, b_begun)):
        counts = np.histogram(times, STRETCHES, (begun, max(times[-1], begun + 1e-12)))[0]
        length = max(times[-1] - begun, 1e-12) / STRETCHES
        places = chance.integers(0, STRETCHES, (DRAWS, STRETCHES))
        means.append(counts[places].mean(axis=1) / length)
    return _judged(means[0], means[1], f"{STRETCHES} stretches of time")


def _judged(a_R: np.ndarray, b_R: np.ndarray, over: str) -> Noise:
    sound = np.isfinite(a_R) & np.isfinite(b_R) & (a_R > 0)
    if sound.sum() < LEAST_DRAWS:
        return Noise(FEW)
    low, high = np.quantile(b_R[sound] / a_R[sound], [0.025, 0.975])
    word = WITHIN if low <= 1 <= high else BEYOND
    return Noise(word, float(low), float(high), over)
