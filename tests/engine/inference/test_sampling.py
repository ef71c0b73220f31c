"""Drawing tokens: each rule against its definition, draws against their distribution."""

import numpy as np
import pytest

from engine.inference.draws import choose, seed_of, uniform
from engine.inference.request import Sampling
from engine.inference.sampling import (
    adjusted,
    likeliest,
    log_softmax,
    pick,
    probabilities,
    top,
)

LOGITS = np.array([2.0, 1.0, 0.5, 0.0, -1.0, -3.0], np.float32)
NOTHING = np.zeros(0, np.int32)


def shares(**wish) -> np.ndarray:
    weights = probabilities(LOGITS.astype(np.float64), Sampling(**wish))
    return weights / weights.sum()


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def test_temperature_divides_the_logits():
    np.testing.assert_allclose(shares(temperature=0.7), softmax(LOGITS / 0.7), rtol=1e-6)


def test_top_k_keeps_the_k_likeliest():
    found = shares(temperature=1.0, top_k=3)
    np.testing.assert_allclose(found[:3], softmax(LOGITS[:3]), rtol=1e-6)
    assert not found[3:].any()


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass():
    whole = softmax(LOGITS)
    for mass in (0.1, 0.5, whole[0] + 1e-4, 0.9, 0.999):
        kept = int(np.count_nonzero(shares(temperature=1.0, top_p=mass)))
        needed = int(np.searchsorted(np.cumsum(whole), mass) + 1)
        assert kept == needed


def test_min_p_keeps_what_is_likely_enough_beside_the_likeliest():
    whole = softmax(LOGITS)
    found = shares(temperature=1.0, min_p=0.2)
    assert (found > 0).tolist() == (whole >= 0.2 * whole.max()).tolist()


def test_repetition_covers_the_prompt_and_pulls_both_signs_down():
    seen = np.array([0, 4], np.int32)
    found = adjusted(LOGITS, Sampling(repetition_penalty=2.0), seen, 2, ())
    assert found[0] == 1.0 and found[4] == -2.0 and found[1] == 1.0


def test_presence_and_frequency_count_the_answer_alone():
    seen = np.array([0, 1, 1, 1, 2], np.int32)
    wish = Sampling(presence_penalty=0.5, frequency_penalty=0.25)
    found = adjusted(LOGITS, wish, seen, 1, ())
    assert found[0] == 2.0 and found[1] == 1.0 - 0.5 - 0.75 and found[2] == 0.5 - 0.75


def test_bias_adds_and_ends_are_forbidden_before_the_floor():
    wish = Sampling(logit_bias=[(5, 9.0)], min_tokens=3, stop_tokens=[1])
    found = adjusted(LOGITS, wish, np.array([0, 2], np.int32), 1, (0,))
    assert found[5] == 6.0 and found[0] == found[1] == -np.inf
    later = adjusted(LOGITS, wish, np.array([0, 2, 2, 2], np.int32), 1, (0,))
    assert later[0] == 2.0 and later[1] == 1.0


def test_temperature_zero_takes_the_likeliest_after_penalties():
    assert pick(LOGITS, Sampling(), NOTHING, 0, 1) == 0
    assert pick(LOGITS, Sampling(logit_bias=[(3, 5.0)]), NOTHING, 0, 1) == 3


def test_the_lowest_number_wins_among_equals():
    logits = np.array([[1.0, 3.0, 3.0, 0.0]], np.float32)
    tokens, logprobs = likeliest(logits)
    assert tokens.tolist() == [1]
    np.testing.assert_allclose(logprobs, [log_softmax(logits[0])[1]], rtol=1e-6)
    assert [token for token, _ in top(log_softmax(logits[0]), 3)] == [1, 2, 0]


@pytest.mark.parametrize(
    "wish",
    [
        {"temperature": 1.0},
        {"temperature": 0.6},
        {"temperature": 1.5, "top_k": 4},
        {"temperature": 1.0, "top_p": 0.9},
        {"temperature": 1.0, "min_p": 0.1},
    ],
    ids=str,
)
def test_draws_follow_the_distribution(wish):
    draws = 20_000
    weights = probabilities(LOGITS.astype(np.float64), Sampling(**wish))
    expected = weights / weights.sum() * draws
    for seed_first in (True, False):  # over seeds at one position, over positions of one seed
        numbers = [
            choose(weights, i if seed_first else 7, 5 if seed_first else i) for i in range(draws)
        ]
        counts = np.bincount(numbers, minlength=len(LOGITS))
        assert not counts[weights == 0].any()
        kept = weights > 0
        chi = float(((counts - expected)[kept] ** 2 / expected[kept]).sum())
        assert chi < 25.0, "chi-square, at most 5 degrees of freedom: p < 0.0002"


def test_draws_depend_on_seed_and_position_alone():
    assert uniform(3, 9) == uniform(3, 9)
    assert len({uniform(seed, 4) for seed in range(1000)}) == 1000
    assert len({uniform(4, position) for position in range(1000)}) == 1000
    assert len({seed_of(0, number) for number in range(1000)}) == 1000
    assert 0 <= min(uniform(s, 0) for s in range(5000)) < 0.01
    assert 0.99 < max(uniform(s, 0) for s in range(5000)) < 1


def test_a_draw_never_lands_on_what_was_cut_even_at_the_edges():
    weights = np.array([0.0, 1e-300, 0.0, 1.0, 0.0])
    assert {choose(weights, seed, 0) for seed in range(500)} == {3}
