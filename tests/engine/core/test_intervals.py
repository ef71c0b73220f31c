"""Intervals: known values, and that they cover the truth as often as they say."""

import numpy as np
import pytest

from engine.core.intervals import STUDENT, of_mean, student_quantiles, wilson


def test_wilson_of_known_counts():
    # Newcombe (1998), table I: 81 of 263 and 0 of 20, method 3.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)


def test_both_hold_the_truth_about_as_often_as_they_say():
    chance, truth, n = np.random.default_rng(0), 0.3, 80
    held = np.zeros(2)
    for trial in range(200):
        right_N = chance.random(n) < truth
        low, high = wilson(right_N.sum(), n)
        held[0] += low <= truth <= high
        lows, highs = of_mean(right_N[:, None].astype(float), trial)
        held[1] += lows[0] <= truth <= highs[0]
    assert (held / 200 > 0.9).all()
    assert (held / 200 < 0.99).all()


def test_more_problems_give_a_narrower_interval():
    wide, narrow = (np.subtract(*wilson(n // 2, n)[::-1]) for n in (20, 2000))
    assert narrow < wide / 5


def test_quantiles_of_student_are_those_of_tables():
    assert student_quantiles(np.array([0.95]), 4)[0] == pytest.approx(2.132, abs=0.01)
    assert student_quantiles(np.array([0.95]), 1)[0] == pytest.approx(6.314, rel=0.01)
    for freedom in (1, 2, 5, 30):
        found = student_quantiles(np.array([0.975]), freedom)[0]
        assert found == pytest.approx(STUDENT[freedom - 1], rel=0.01)
