"""Drawing tokens: each rule against its definition, draws against their distribution."""

import numpy as np
import pytest

from engine.inference.executors.tensors.sampler import Sampler, adjust, top
from engine.inference.requests.request import Request, Sampling
from engine.inference.requests.rows import Rows
from engine.inference.requests.step import Step
from engine.kernels.draws import seed_of, uniform
from engine.kernels.sample.reference import choose, weights

LOGITS = np.array([2.0, 1.0, 0.5, 0.0, -1.0, -3.0], np.float32)
NOTHING = np.zeros(0, np.int32)


def shares(**wish) -> np.ndarray:
    found = drawn_from(**wish)
    return found / found.sum()


def drawn_from(**fields) -> np.ndarray:
    wish = Sampling(**fields)
    return weights(LOGITS, wish.temperature, wish.top_k, wish.top_p, wish.min_p)


def adjusted(wish: Sampling, seen: np.ndarray, prompt: int, eos=()) -> np.ndarray:
    scores = LOGITS.copy()
    adjust(scores, wish, seen, prompt, eos)
    return scores


def step_of(wishes: list[Sampling], vocab: int) -> Step:
    """A step that samples once for each wish, after three prompt tokens and two of an answer."""
    count = len(wishes)
    rows = Rows(count, 4)
    for rows.count in range(count):  # they come one by one
        rows.reserve(5)
    rows.count = count
    rows.tokens[:count, :5] = np.random.default_rng(9).integers(0, vocab, (count, 5))
    rows.known[:], rows.prompt[:] = 5, 3
    rows.plain[:] = [wish == Sampling() for wish in wishes]
    requests = [Request(rows.tokens[r, :3], wish, seed=31 + r) for r, wish in enumerate(wishes)]
    every = np.arange(count, dtype=np.int32)
    return Step(0, rows, requests, every, every * 0 + 4, every * 0 + 1, every, every, count, 0)


def softmax(logits: np.ndarray) -> np.ndarray:
    found = np.exp(logits - logits.max())
    return found / found.sum()


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
    found = adjusted(Sampling(repetition_penalty=2.0), seen, 2)
    assert found[0] == 1.0 and found[4] == -2.0 and found[1] == 1.0


def test_presence_and_frequency_count_the_answer_alone():
    seen = np.array([0, 1, 1, 1, 2], np.int32)
    wish = Sampling(presence_penalty=0.5, frequency_penalty=0.25)
    found = adjusted(wish, seen, 1)
    assert found[0] == 2.0 and found[1] == 1.0 - 0.5 - 0.75 and found[2] == 0.5 - 0.75


def test_bias_adds_and_ends_are_forbidden_before_the_floor():
    wish = Sampling(logit_bias=[(5, 9.0)], min_tokens=3, stop_tokens=[1])
    found = adjusted(wish, np.array([0, 2], np.int32), 1, (0,))
    assert found[5] == 6.0 and found[0] == found[1] == -np.inf
    later = adjusted(wish, np.array([0, 2, 2, 2], np.int32), 1, (0,))
    assert later[0] == 2.0 and later[1] == 1.0


def test_temperature_zero_takes_the_likeliest_after_penalties():
    step = step_of([Sampling(), Sampling(logit_bias=[(3, 5.0)])], len(LOGITS))
    tokens, logprobs, _ = Sampler(compiled=False)(np.tile(LOGITS, (2, 1)), step.sample_from_S, step)
    assert tokens.tolist() == [0, 3]
    np.testing.assert_allclose(logprobs, np.log(softmax(LOGITS))[[0, 3]], rtol=1e-6)


def test_the_likeliest_are_told_in_order_with_what_the_model_itself_gives_them():
    logits = np.array([[1.0, 3.0, 3.0, 0.0]], np.float32)
    step = step_of([Sampling(logprobs=3, logit_bias=[(3, 9.0)])], 4)
    tokens, logprobs, tops = Sampler(compiled=False)(logits, step.sample_from_S, step)
    exact = np.log(softmax(logits[0]))
    assert tokens.tolist() == [3] and [token for token, _ in tops[0]] == [1, 2, 0]
    np.testing.assert_allclose([found for _, found in tops[0]], exact[[1, 2, 0]], rtol=1e-6)
    np.testing.assert_allclose(logprobs, exact[[3]], rtol=1e-6)
    assert len(top(logits[0], 0.0, 64)) == 4 and top(logits[0] * np.nan, 0.0, 2) == []


def test_kernels_and_plain_numpy_take_the_same_tokens():
    cuts = [
        {"temperature": 0.0},
        {"temperature": 0.7},
        {"temperature": 1.3, "top_k": 20},
        {"temperature": 1.0, "top_p": 0.8, "min_p": 0.02},
    ]
    extras = [
        {},
        {"repetition_penalty": 1.3, "frequency_penalty": 0.4},
        {"logit_bias": [(7, 3.3)], "min_tokens": 9, "stop_tokens": [3], "logprobs": 4},
    ]
    wishes = [Sampling(**cut, **extra) for cut in cuts for extra in extras for _ in range(4)]
    step, vocab = step_of(wishes, 901), 901
    logits = np.random.default_rng(4).normal(0, 3, (len(wishes), vocab)).astype(np.float32)
    logits[::5, 400:] = logits[::5].max(-1, keepdims=True)  # many equals
    tokens, logprobs, tops = Sampler(True, (2,))(logits, step.sample_from_S, step)
    plain, exact, plain_tops = Sampler(False, (2,))(logits, step.sample_from_S, step)
    assert tokens.tolist() == plain.tolist() and len(set(plain.tolist())) > 20
    np.testing.assert_allclose(logprobs, exact, atol=4e-6)
    assert {s: [t for t, _ in found] for s, found in tops.items()} == {
        s: [t for t, _ in found] for s, found in plain_tops.items()
    }


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
def test_draws_follow_the_cut_distribution(wish):
    draws = 20_000
    shares_of = drawn_from(**wish)
    expected = shares_of / shares_of.sum() * draws
    for seed_first in (True, False):  # over seeds at one position, over positions of one seed
        numbers = [
            choose(shares_of, i if seed_first else 7, 5 if seed_first else i) for i in range(draws)
        ]
        counts = np.bincount(numbers, minlength=len(LOGITS))
        kept = shares_of > 0
        assert not counts[~kept].any()
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
    edges = np.array([0.0, 1e-300, 0.0, 1.0, 0.0])
    assert {choose(edges, seed, 0) for seed in range(500)} == {3}
