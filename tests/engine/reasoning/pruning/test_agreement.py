"""The area under the ROC against its definition, pair by pair, and its intervals."""

import numpy as np
import pytest

from engine.reasoning.pruning.agreement import Pairs, area, auroc, pairs_of, roc, within
from engine.reasoning.pruning.judges import alike, distance
from engine.reasoning.pruning.pruning import FinishedTrace


def by_hand(score_N: np.ndarray, same_N: np.ndarray) -> float:
    """Every pair of one of each class: above counts one, equal one half."""
    won = [
        1.0 if yes > no else 0.5 if yes == no else 0.0
        for yes in score_N[same_N]
        for no in score_N[~same_N]
    ]
    return float(np.mean(won))


@pytest.mark.parametrize("seed", range(6))
def test_the_area_is_the_chance_of_a_right_order(seed: int) -> None:
    chance = np.random.default_rng(seed)
    score_N = chance.integers(0, 6, 40) / 5 if seed % 2 else chance.random(40)
    same_N = chance.random(40) < 0.3 + 0.4 * score_N
    assert auroc(score_N, same_N) == pytest.approx(by_hand(score_N, same_N), abs=1e-12)
    false, true = roc(score_N, same_N)
    assert np.trapezoid(true, false) == pytest.approx(auroc(score_N, same_N), abs=1e-12)
    assert (false[0], true[0], false[-1], true[-1]) == (0, 0, 1, 1)


def test_the_ends_of_the_scale() -> None:
    same_N = np.array([True, True, False, False])
    assert auroc(np.array([4.0, 3, 2, 1]), same_N) == 1
    assert auroc(np.array([1.0, 2, 3, 4]), same_N) == 0
    assert auroc(np.zeros(4), same_N) == 0.5
    assert np.isnan(auroc(np.zeros(4), np.ones(4, bool)))


def test_telling_questions_apart_is_not_telling_traces_apart() -> None:
    easy = Pairs(np.full(10, 0.9), np.arange(10) > 0)
    hard = Pairs(np.full(10, 0.1), np.arange(10) == 0)
    found = area([easy, hard] * 20)
    assert found.value > 0.85
    assert found.low <= found.value <= found.high
    assert (found.pairs, found.questions) == (400, 40)
    assert within([easy, hard]) == (0.5, 2)


def test_pairs_are_every_two_traces_once() -> None:
    traces = [FinishedTrace(f"t{n}", [n], answer, False) for n, answer in enumerate("aba")]
    score_NN = np.arange(9.0).reshape(3, 3)
    pairs = pairs_of(traces, score_NN)
    assert pairs.score_N.tolist() == [1, 2, 5]
    assert pairs.same_N.tolist() == [False, True, False]


def test_the_edit_distance_is_the_recursive_one() -> None:
    def slow(one: str, other: str) -> int:
        if not one or not other:
            return len(one) + len(other)
        same = slow(one[1:], other[1:]) + (one[0] != other[0])
        return min(same, 1 + slow(one[1:], other), 1 + slow(one, other[1:]))

    for one, other in (("a0+2=2", "a0+3=3;"), ("", "ab"), ("kitten", "sitting"), ("ab", "ab")):
        assert distance(one, other) == slow(one, other)
    assert alike("", "") == alike("x1", "x1") == 1
    assert alike("ab", "cd") == 0
