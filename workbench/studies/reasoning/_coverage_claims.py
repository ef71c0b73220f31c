"""Checks of Large Language Monkeys: the law of coverage, the vote's plateau, the verifier."""

from collections.abc import Callable

import numpy as np

from engine.core.config import update
from engine.core.intervals import of_mean
from engine.core.log import Log
from engine.reasoning.repeated_sampling.repeated_sampling import RepeatedSamplingConfig
from workbench.studies.reasoning._large_language_monkeys import (
    coverage,
    equally_hard,
    fit,
    last_fitted,
    law_of,
    numbers,
    selected,
    unbiased,
    voted,
)
from workbench.study import Changes, Figure, Outcome, RunConfig

NEAR = 0.08  # of coverage that the law may be away
RESAMPLES = 200
ORDERS = 4.0  # of magnitude of samples, in the paper
GROWTH = 0.2  # of coverage from one sample to all, for there to be a curve at all
FAST: Changes = {"problems": 30, "samples": 64}
CURVE: Changes = {"problems": 80, "samples": 64}  # fast too; a mean over problems
FULL: Changes = {"problems": 400, "samples": 256, "tokens": False}  # else 19 events a sample


def sampled(config: RepeatedSamplingConfig, run_config: RunConfig, fast: bool) -> Log:
    """A run of the size that the claims are judged on."""
    return run_config(update(config, FAST if fast else FULL))


def law(config: RepeatedSamplingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Fitted to small k alone, the law has to foresee coverage at the k it has not seen."""
    return law_with(config, (CURVE if fast else FULL)["samples"], run_config, fast)


def law_with(
    config: RepeatedSamplingConfig, samples: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with so many samples of each problem."""
    config = update(config, {**(CURVE if fast else FULL), "samples": int(samples)})
    right_PN = run_config(config).blobs["right_PN"]
    covered = coverage(config, right_PN, numbers(config.samples))
    found, held = law_of(config, covered), covered.k_K > last_fitted(config)
    k_K, mean_K, growth = covered.k_K[held], covered.mean_K[held], np.ptp(covered.mean_K)
    if found is None:
        return Outcome("a law fitted to k > 1", "coverage does not change with k: no law", False)
    far = resampled(config, right_PN, covered.k_K, lambda apart_K: float(apart_K[held].max()), "%")
    foreseen_K = found.coverage(k_K)
    alike = float(np.abs(equally_hard(k_K, covered.mean_K[0]) - mean_K).max())
    return Outcome(
        f"fitted to k ≤ {last_fitted(config)}, within {NEAR:.0%} of coverage for all larger k (95% "
        "interval) and at most half as far as equally hard problems would be; growth of "
        f"{GROWTH:.0%} or more",
        f"{far.value:.1%} [{far.low:.1%}, {far.high:.1%}] and {alike:.1%} away; "
        f"{covered.mean_K[0]:.1%} at k = 1, {foreseen_K[-1]:.1%} foreseen and {mean_K[-1]:.1%} "
        f"[{covered.low_K[-1]:.1%}, {covered.high_K[-1]:.1%}] found at k = "
        f"{config.samples}; n = {len(right_PN)} problems",
        bool(far.high <= NEAR and far.value <= alike / 2 and growth >= GROWTH),
        figure=far,
        needed=NEAR,
    )


def orders(config: RepeatedSamplingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """How far the same law reaches, of all samples that were drawn."""
    return orders_from(config, 0.0, run_config, fast)


def orders_from(
    config: RepeatedSamplingConfig, fitted: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same of a law that is fitted to so many samples at most; to the config's part where none
    are named."""
    config = update(config, CURVE if fast else FULL)
    right_PN, k_K = run_config(config).blobs["right_PN"], numbers(config.samples)
    if fitted:
        config = update(config, {"fitted": fitted / config.samples})

    def reach(apart_K: np.ndarray) -> float:
        """Orders of magnitude, from one sample on, over which the law is near."""
        last = len(k_K) if (apart_K <= NEAR).all() else int((apart_K > NEAR).argmax())
        return float(np.log10(k_K[last - 1])) if last else 0.0

    figure = resampled(config, right_PN, k_K, reach, "orders of magnitude")
    return Outcome(
        f"within {NEAR:.0%} of coverage over {ORDERS:g} orders of magnitude of samples (95% "
        "interval)",
        f"over {figure.value:.1f} of the {np.log10(config.samples):.1f} that were drawn; "
        f"n = {figure.n} problems",
        figure.low >= ORDERS,
        figure=figure,
        needed=ORDERS,
    )


def resampled(
    config: RepeatedSamplingConfig, right_PN: np.ndarray, k_K: np.ndarray,
    measure: Callable[[np.ndarray], float], unit: str,
) -> Figure:  # fmt: skip
    """`measure` of how far the law is from coverage at each k; a bootstrap's interval over
    problems, the law fitted to each draw of them anew."""
    each_PK, chance = unbiased(right_PN, k_K), np.random.default_rng(config.seed)
    count, known = len(each_PK), k_K <= last_fitted(config)
    drawn = [np.arange(count), *(chance.integers(0, count, count) for _ in range(RESAMPLES))]
    found = []
    for problems in drawn:
        mean_K = each_PK[problems].mean(0)
        law = fit(k_K[known], mean_K[known])
        found.append(measure(np.abs(law.coverage(k_K) - mean_K) if law else np.ones(len(k_K))))
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return Figure(found[0], float(low), float(high), unit, count)


def plateau(config: RepeatedSamplingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Choice by verifier against majority vote on the same samples, problem by problem."""
    return plateau_with(config, (FAST if fast else FULL)["samples"], run_config, fast)


def plateau_with(
    config: RepeatedSamplingConfig, samples: float, run_config: RunConfig, fast: bool
) -> Outcome:
    """The same with so many samples of each problem."""
    config = update(config, {**(FAST if fast else FULL), "samples": int(samples)})
    blobs = run_config(config).blobs
    right_PN, n = blobs["right_PN"], blobs["right_PN"].shape[1]
    k_K = np.array([n // 8, n])
    vote_PK = voted(right_PN, blobs["answer_PN"], k_K, config.seed)
    chosen_PK = selected(right_PN, blobs["accepted_PN"], k_K, config.seed)
    low, high = of_mean(chosen_PK[:, 1:] - vote_PK[:, 1:])
    gains = [values_PK.mean(0) for values_PK in (vote_PK, chosen_PK)]
    vote, chosen = (gain[1] - gain[0] for gain in gains)
    less_P1 = np.diff(chosen_PK / 2 - vote_PK, axis=1)  # than half of the choice's gain
    return Outcome(
        f"at k = {n} the verifier's choice is right more often than the vote (95% interval above "
        f"0), and from k = {n // 8} on the vote gains less than half of what the choice gains (so "
        "too)",
        f"vote {gains[0][1]:.1%}, choice {gains[1][1]:.1%}, difference [{low[0]:+.1%}, "
        f"{high[0]:+.1%}]; gains {vote:+.1%} and {chosen:+.1%}; n = {len(right_PN)} problems",
        bool(low[0] > 0 and of_mean(less_P1)[0][0] > 0),
        figure=Figure.mean(np.diff(chosen_PK - vote_PK, axis=1), "%"),
        needed=0.0,
    )


def verified(config: RepeatedSamplingConfig, run_config: RunConfig, fast: bool) -> Outcome:
    """Whether choosing by the verifier turns all of coverage into solved problems."""
    blobs = sampled(config, run_config, fast).blobs
    right_PN, n = blobs["right_PN"], np.array([blobs["right_PN"].shape[1]])
    once, covered = (float(unbiased(right_PN, k).mean()) for k in (np.array([1]), n))
    chosen = selected(right_PN, blobs["accepted_PN"], n, config.seed).mean()
    return Outcome(
        f"of {len(right_PN)} problems, as many solved by the choice as hold a right sample",
        f"{chosen:.1%} solved, {covered:.1%} covered; {once:.1%} with one sample",
        bool(chosen == covered and covered > 0),
        figure=Figure.exact(covered - chosen, "%"),
        needed=0.0,
    )
