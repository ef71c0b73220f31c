"""Checks of Large Language Monkeys: the law of coverage, the vote's plateau, the verifier."""

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
GROWTH = 0.2  # of coverage from one sample to all, for there to be a curve at all
FAST: Changes = {"problems": 30, "samples": 64}
CURVE: Changes = {"problems": 80, "samples": 64}  # fast too; a mean over problems
FULL: Changes = {"problems": 400, "samples": 256}


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
    reach = reaches(config, right_PN, covered.k_K)
    foreseen_K = found.coverage(k_K)
    apart = float(np.abs(foreseen_K - mean_K).max())
    alike = float(np.abs(equally_hard(k_K, covered.mean_K[0]) - mean_K).max())
    return Outcome(
        f"fitted to k ≤ {last_fitted(config)}, within {NEAR:.0%} of coverage for all larger k and "
        f"at most half as far as equally hard problems would be; growth of {GROWTH:.0%} or more",
        f"{apart:.1%} and {alike:.1%} away; {covered.mean_K[0]:.1%} at k = 1, "
        f"{foreseen_K[-1]:.1%} foreseen and {mean_K[-1]:.1%} [{covered.low_K[-1]:.1%}, "
        f"{covered.high_K[-1]:.1%}] found at k = {config.samples}; n = {len(right_PN)} problems; "
        f"within {NEAR:.0%} over {reach.value:.1f} orders of magnitude",
        bool(apart <= NEAR and apart <= alike / 2 and growth >= GROWTH),
        figure=reach,
    )


def reaches(config: RepeatedSamplingConfig, right_PN: np.ndarray, k_K: np.ndarray) -> Figure:
    """Orders of magnitude of samples, from one on, over which the law is near what was found.

    The interval is a bootstrap's over problems.
    """
    each_PK, chance = unbiased(right_PN, k_K), np.random.default_rng(config.seed)
    count, known = len(each_PK), k_K <= last_fitted(config)
    drawn = [np.arange(count), *(chance.integers(0, count, count) for _ in range(RESAMPLES))]
    found = []
    for problems in drawn:
        mean_K = each_PK[problems].mean(0)
        law = fit(k_K[known], mean_K[known])
        near_K = np.abs(law.coverage(k_K) - mean_K) <= NEAR if law else np.zeros(len(k_K), bool)
        last = len(k_K) - 1 if near_K.all() else int(near_K.argmin()) - 1
        found.append(float(np.log10(k_K[last])) if last >= 0 else 0.0)
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return Figure(found[0], float(low), float(high), "orders of magnitude", count)


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
    return Outcome(
        f"at k = {n} the verifier's choice is right more often than the vote (95% interval above "
        f"0), and from k = {n // 8} on the vote gains less than half of what the choice gains",
        f"vote {gains[0][1]:.1%}, choice {gains[1][1]:.1%}, difference [{low[0]:+.1%}, "
        f"{high[0]:+.1%}]; gains {vote:+.1%} and {chosen:+.1%}; n = {len(right_PN)} problems",
        bool(low[0] > 0 and chosen > 0 and vote < chosen / 2),
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
