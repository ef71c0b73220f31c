"""Coverage: how many problems repeated sampling solves by number of samples, beside a vote.

In come, for each problem, which of its n samples are right, accepted, and what they answer; out
come curves over k, the samples taken (Brown et al., arXiv 2407.21787). Shape letters: P problems,
N samples of each, K numbers of samples.
"""

import math
from dataclasses import dataclass

import numpy as np

from engine.core.intervals import of_mean
from engine.core.plot import MODELLED, Plot
from engine.core.run import Live
from engine.reasoning.repeated_sampling import repeated_sampling
from engine.reasoning.repeated_sampling.repeated_sampling import RepeatedSamplingConfig

SHUFFLES = 40  # orders of a problem's samples over which a vote is averaged
FLAT = 1e-9  # coverage that moves less has no law
SOLVED = Plot("solved", "samples k", "problems solved (share)", log_x=True)
LAW = Plot("law", "samples k", "−log coverage", log_x=True, log_y=True)
COVERAGE = "coverage"  # a series of SOLVED


@dataclass(frozen=True, slots=True)
class Curve:
    """Means over the problems at each k, with their 95% intervals."""

    k_K: np.ndarray
    mean_K: np.ndarray
    low_K: np.ndarray
    high_K: np.ndarray

    def at(self, k: int) -> float:
        """The mean at one k of the curve."""
        return float(self.mean_K[self.k_K.tolist().index(k)])


@dataclass(frozen=True, slots=True)
class Law:
    """c = exp(a k^b), the exponentiated power law (section 3.1, equation 2)."""

    a: float
    b: float

    def coverage(self, k: np.ndarray | float) -> np.ndarray:
        return np.exp(self.a * np.asarray(k, float) ** self.b)


def numbers(n: int) -> np.ndarray:
    """The k of a curve: 1 to n, evenly spread over the logarithm, both ends and powers of two."""
    even = np.geomspace(1, n, 25).round().astype(int)
    powers = 2 ** np.arange(int(math.log2(n)) + 1)
    return np.unique([*even, *powers, n])


def unbiased(right_PN: np.ndarray, k_K: np.ndarray) -> np.ndarray:
    """pass@k of each problem, [P, K]: the share of all k-subsets that hold a right sample.

    1 - C(n-c, k) / C(n, k) (Chen et al., arXiv 2107.03374, section 2.1), by logarithms.
    """
    n = right_PN.shape[1]
    wrong_P1 = n - right_PN.sum(1, keepdims=True).astype(int)
    log = np.concatenate([[0.0], np.log(np.arange(1, n + 1)).cumsum()])  # of factorials
    left_PK = wrong_P1 - k_K
    chosen_PK = log[wrong_P1] - log[np.maximum(left_PK, 0)] - (log[n] - log[n - k_K])
    return np.where(left_PK < 0, 1.0, 1 - np.exp(chosen_PK))


def plug_in(right_PN: np.ndarray, k_K: np.ndarray) -> np.ndarray:
    """1 - (1 - c/n)^k, as if the share found were the chance itself: too low on average."""
    share_P1 = right_PN.mean(1, keepdims=True)
    return 1 - (1 - share_P1) ** k_K


def curve(values_PK: np.ndarray, k_K: np.ndarray, seed: int = 0) -> Curve:
    """Means over problems with bootstrap intervals."""
    low_K, high_K = of_mean(values_PK, seed)
    return Curve(k_K, values_PK.mean(0), low_K, high_K)


def fit(k_K: np.ndarray, mean_K: np.ndarray) -> Law | None:
    """Least squares on coverage, to first order; None where c is 0, 1 or flat everywhere.

    A line through log(-log c) = log(-a) + b log k, each point weighted by how much c moves with it:
    unweighted, coverage near 1 would decide alone.
    """
    inside = (mean_K > 0) & (mean_K < 1)
    if inside.sum() < 2 or np.ptp(mean_K[inside]) < FLAT:
        return None
    k, c = k_K[inside], mean_K[inside]
    b, log_a = np.polyfit(np.log(k), np.log(-np.log(c)), 1, w=-c * np.log(c))
    return Law(-math.exp(log_a), float(b))


def equally_hard(k_K: np.ndarray, one: float) -> np.ndarray:
    """Coverage if every problem were solved by a sample with the same chance `one`."""
    return 1 - (1 - one) ** k_K


def voted(right_PN: np.ndarray, answer_PN: np.ndarray, k_K: np.ndarray, seed: int) -> np.ndarray:
    """Share of shuffles in which the commonest answer of the first k is right, [P, K].

    `answer_PN`: numbers that are equal for equal answers, -1 for none, which is no vote. Answers
    with as many votes win in equal shares.
    """
    chance = np.random.default_rng(seed)
    return np.stack(
        [
            _votes(right_N, answer_N, k_K, chance)
            for right_N, answer_N in zip(right_PN, answer_PN, strict=True)
        ]
    )


def _votes(
    right_N: np.ndarray, answer_N: np.ndarray, k_K: np.ndarray, chance: np.random.Generator
) -> np.ndarray:
    names, place_N = np.unique(answer_N, return_inverse=True)
    is_right = np.zeros(len(names))
    is_right[place_N[right_N.astype(bool)]] = 1.0
    ballots_NA = np.eye(len(names))[place_N] * (names >= 0)
    found_K = np.zeros(len(k_K))
    for _ in range(SHUFFLES):
        counts_KA = ballots_NA[chance.permutation(len(answer_N))].cumsum(0)[k_K - 1]
        most_K1 = counts_KA.max(1, keepdims=True)
        winners_KA = (counts_KA == most_K1) & (most_K1 > 0)
        found_K += (winners_KA @ is_right) / np.maximum(winners_KA.sum(1), 1)
    return found_K / SHUFFLES


def selected(
    right_PN: np.ndarray, accepted_PN: np.ndarray, k_K: np.ndarray, seed: int
) -> np.ndarray:
    """Share of shuffles in which the first accepted of the first k samples is right, [P, K].

    Where none is accepted the first sample is taken. With a verifier that never errs this is
    pass@k.
    """
    chance = np.random.default_rng(seed)
    found_PK = np.zeros((len(right_PN), len(k_K)))
    problems, last = np.arange(len(right_PN)), right_PN.shape[1] - 1
    for _ in range(SHUFFLES):
        order_PN = chance.permuted(np.tile(np.arange(last + 1), (len(right_PN), 1)), axis=1)
        right = np.take_along_axis(right_PN, order_PN, 1)
        accepted = np.take_along_axis(accepted_PN, order_PN, 1).astype(bool)
        first_P = np.where(accepted.any(1), accepted.argmax(1), last + 1)
        taken_PK = np.where(first_P[:, None] < k_K, np.minimum(first_P, last)[:, None], 0)
        found_PK += right[problems[:, None], taken_PK]
    return found_PK / SHUFFLES


def run(config: RepeatedSamplingConfig, live: Live) -> None:
    """Sample, and draw the curves over all problems whose samples are there by then."""
    repeated_sampling.run(config, live, (SOLVED, LAW), curves)


def curves(
    config: RepeatedSamplingConfig,
    right_PN: np.ndarray,
    accepted_PN: np.ndarray,
    answer_PN: np.ndarray,
) -> dict[tuple[Plot, str], np.ndarray]:
    """Every curve by its plot and series; none before the first problem is whole."""
    if not len(right_PN):
        return {}
    k_K = numbers(right_PN.shape[1])
    covered = coverage(config, right_PN, k_K)
    chosen = curve(selected(right_PN, accepted_PN, k_K, config.seed), k_K)
    vote = curve(voted(right_PN, answer_PN, k_K, config.seed), k_K)
    drawn = {
        (SOLVED, COVERAGE): rows(covered),
        (SOLVED, "chosen by the verifier"): rows(chosen),
        (SOLVED, "majority vote"): rows(vote),
    }
    inside = (covered.mean_K > 0) & (covered.mean_K < 1)
    if inside.any():
        drawn[LAW, "measured"] = np.stack([k_K[inside], -np.log(covered.mean_K[inside])])
    law = law_of(config, covered)
    if law is not None:
        name = f"a k^b fitted to k ≤ {last_fitted(config)}{MODELLED}"
        drawn[SOLVED, f"exp of {name}"] = np.stack([k_K, law.coverage(k_K)])
        drawn[LAW, name] = np.stack([k_K, -np.log(law.coverage(k_K))])
    return drawn


def coverage(config: RepeatedSamplingConfig, right_PN: np.ndarray, k_K: np.ndarray) -> Curve:
    """Share of problems with a right sample among k, by the config's estimator."""
    estimate = unbiased if config.estimator == "unbiased" else plug_in
    return curve(estimate(right_PN, k_K), k_K)


def last_fitted(config: RepeatedSamplingConfig) -> int:
    """The largest k that the law is fitted to."""
    return max(2, int(config.fitted * config.samples))


def law_of(config: RepeatedSamplingConfig, covered: Curve) -> Law | None:
    """The law fitted to the small k alone, so that the large ones test it."""
    known = covered.k_K <= last_fitted(config)
    return fit(covered.k_K[known], covered.mean_K[known])


def rows(curve: Curve) -> np.ndarray:
    """[4, K]: x, y, low, high."""
    return np.stack([curve.k_K, curve.mean_K, curve.low_K, curve.high_K]).astype(np.float64)
