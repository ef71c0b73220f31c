"""Coverage and votes: equal to enumeration on small cases, unbiased, and the law found again."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from workbench.studies.reasoning._large_language_monkeys import (
    SHUFFLES,
    Law,
    curve,
    fit,
    numbers,
    plug_in,
    selected,
    unbiased,
    voted,
)


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 4), st.integers(2, 7)), elements=st.integers(0, 1))
)
def test_the_estimator_is_the_mean_over_all_subsets(right_PN):
    n = right_PN.shape[1]
    k_K = np.arange(1, n + 1)
    every = [
        [np.mean([max(chosen) for chosen in combinations(row, k)]) for k in k_K]
        for row in right_PN.tolist()
    ]
    np.testing.assert_allclose(unbiased(right_PN, k_K), every, atol=1e-12)


def test_it_is_unbiased_and_the_plug_in_is_not():
    chance, p, k = np.random.default_rng(0), 0.1, np.array([8])
    right_PN = (chance.random((20_000, 16)) < p).astype(np.uint8)
    truth = 1 - (1 - p) ** 8
    assert unbiased(right_PN, k).mean() == pytest.approx(truth, abs=0.01)
    assert plug_in(right_PN, k).mean() < truth - 0.03


def test_many_samples_do_not_overflow():
    right_PN = np.zeros((2, 10_000), np.uint8)
    right_PN[1, 0] = 1
    np.testing.assert_allclose(
        unbiased(right_PN, np.array([1, 5000, 10_000]))[1], [1e-4, 0.5, 1.0], atol=1e-9
    )


def test_the_numbers_of_samples_hold_both_ends_and_powers_of_two():
    assert numbers(100).tolist()[:5] == [1, 2, 3, 4, 5]
    assert {1, 64, 100} <= set(numbers(100).tolist())
    assert numbers(2).tolist() == [1, 2]


def test_the_law_is_found_again_and_only_where_there_is_one():
    law = Law(-1.7, -0.4)
    k_K = numbers(64)
    found = fit(k_K, law.coverage(k_K))
    assert (found.a, found.b) == pytest.approx((law.a, law.b))
    assert fit(k_K, np.zeros(len(k_K))) is None
    assert fit(k_K, np.full(len(k_K), 0.3)) is None


def test_coverage_near_one_does_not_decide_the_law_alone():
    law, k_K = Law(-0.7, -0.6), numbers(128)
    c_K = law.coverage(k_K)
    c_K[c_K > 0.98] = 0.9999  # a few problems more or less, far away in log(-log c)
    assert np.abs(fit(k_K, c_K).coverage(k_K) - c_K).max() < 0.03


def test_a_vote_counts_answers_and_shares_ties():
    right = np.array([[1, 0, 0, 1, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 0]], np.uint8)
    answer = np.array([[7, 1, 2, 7, 3], [7, 1, -1, -1, -1], [-1, -1, -1, -1, -1]])
    found = voted(right, answer, np.array([1, 5]), seed=0)
    assert found[:, 1].tolist() == [1.0, 0.5, 0.0]
    assert found[0, 0] == pytest.approx(0.4, abs=4 * 0.5 / SHUFFLES**0.5)


@given(st.integers(0, 1000))
def test_a_vote_of_all_is_the_commonest_answer(seed):
    chance = np.random.default_rng(seed)
    answer_N = chance.integers(0, 4, 15)
    most = Counter(answer_N.tolist()).most_common()
    winners = [answer for answer, count in most if count == most[0][1]]
    right_N = (answer_N == 0).astype(np.uint8)
    found = voted(right_N[None], answer_N[None], np.array([15]), seed)
    assert found[0, 0] == pytest.approx((0 in winners) / len(winners))


def test_choice_by_a_verifier_that_never_errs_is_coverage_and_by_form_one_sample():
    chance = np.random.default_rng(1)
    right_PN = (chance.random((300, 16)) < 0.15).astype(np.uint8)
    k_K = np.array([1, 4, 16])
    sure = selected(right_PN, right_PN, k_K, 0).mean(0)
    np.testing.assert_allclose(sure, unbiased(right_PN, k_K).mean(0), atol=0.02)
    assert sure[-1] == unbiased(right_PN, k_K).mean(0)[-1]
    blind = selected(right_PN, np.ones_like(right_PN), k_K, 0).mean(0)
    np.testing.assert_allclose(blind, right_PN.mean(), atol=0.02)
    nobody = selected(right_PN, np.zeros_like(right_PN), k_K, 0).mean(0)
    np.testing.assert_allclose(nobody, right_PN.mean(), atol=0.02)


def test_a_curve_has_its_interval_around_it():
    chance = np.random.default_rng(0)
    found = curve(chance.random((50, 3)), np.array([1, 2, 3]))
    assert (found.low_K < found.mean_K).all() and (found.mean_K < found.high_K).all()
    assert found.at(2) == found.mean_K[1]
