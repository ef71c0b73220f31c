"""The curves of a repeated-sampling run, as arrays for the curves view: x, y, low, high."""

import numpy as np

from engine.core.plot import MODELLED, Plot
from engine.reasoning.repeated_sampling.config import RepeatedSamplingConfig
from engine.reasoning.repeated_sampling.coverage import (
    Curve,
    Law,
    curve,
    fit,
    numbers,
    plug_in,
    selected,
    unbiased,
    voted,
)

SOLVED = Plot("solved", "samples k", "problems solved (share)", log_x=True)
LAW = Plot("law", "samples k", "−log coverage", log_x=True, log_y=True)
COVERAGE, VOTE = "coverage", "majority vote"  # series of SOLVED


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
        (SOLVED, VOTE): rows(vote),
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
