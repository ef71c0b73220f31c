"""Rejection sampling keeps the target's distribution: chi-square, and a broken rule that fails."""

import math

import numpy as np
import pytest

from engine.core.clock import VirtualClock
from engine.inference.engine import Engine
from engine.inference.executors.tensors import rejection
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, sampling
from engine.models.families import parse
from engine.models.loading.load import random_model
from tests.engine.inference.small import TINY, config, serve

VOCAB = 12
LIKELY = 4  # what nobody drew but everybody drafts
SURE = 1e-4  # a right rule is called wrong once in ten thousand


def unlikely(seen_N: np.ndarray, p_V: np.ndarray) -> float:
    """The probability that draws from `p_V` look at least as unlike it as `seen_N` does."""
    counts = np.bincount(seen_N, minlength=len(p_V))
    expected = p_V * len(seen_N)
    some = expected > 0
    assert not counts[~some].any(), "a token that cannot be drawn was"
    statistic = float(((counts[some] - expected[some]) ** 2 / expected[some]).sum())
    # The cube root of chi-square is nearly normal (Wilson and Hilferty, 1931).
    width = 2 / (9 * (int(some.sum()) - 1))
    apart = ((statistic / (some.sum() - 1)) ** (1 / 3) - (1 - width)) / math.sqrt(width)
    return 0.5 * math.erfc(apart / math.sqrt(2))


def drawn(p_V: np.ndarray, q_V: np.ndarray | None, count: int, residual: bool) -> np.ndarray:
    """Tokens of as many seeds, each verified against a draft of its own."""
    seen = np.empty(count, np.int64)
    for seed in range(count):
        token = LIKELY if q_V is None else rejection.draft(q_V, seed, 7)
        seen[seed] = rejection.verify(p_V, q_V, token, seed, 7, residual)
    return seen


@pytest.mark.parametrize("certain", [False, True], ids=["a model drafts", "a certain draft"])
def test_verified_drafts_have_the_targets_distribution(certain, full):
    draw = np.random.default_rng(2)
    p_V = rejection.distribution(draw.normal(0, 1.5, VOCAB), (0.9, 0, 0.97, 0.0))
    q_V = (
        None if certain else rejection.distribution(draw.normal(0, 1.5, VOCAB), (0.9, 0, 1.0, 0.0))
    )
    count = 100_000 if full else 10_000
    assert unlikely(drawn(p_V, q_V, count, residual=True), p_V) > SURE
    assert unlikely(drawn(p_V, q_V, count, residual=False), p_V) < SURE**2, "the broken rule passes"


@pytest.mark.parametrize("drafts", ["ngram", "draft_model"])
def test_sampled_answers_of_an_engine_have_the_targets_distribution(drafts, full):
    """Third tokens of many requests that all said the same two, drafts verified by rejection."""
    shape = {"vocab_size": VOCAB, "num_hidden_layers": 1, "eos_token_id": VOCAB - 1}
    models = [random_model(parse(TINY | shape, "tiny"), seed=seed) for seed in (1, 2)]
    count = 20_000 if full else 1_500
    prompt = np.array([1, 2, 3, 4, 1, 2, 3], np.int32)
    found = []
    for fault in ("none", "no_residual"):
        how = {"kind": drafts, "verification": "rejection", "fault": fault, "tokens": 2}
        chosen = config(pages=900, max_running=64, step_tokens=2048, speculation=how)
        draft = models[1] if drafts == "draft_model" else None
        held = executor_for(chosen, models[0], "tiny", draft=draft)
        engine = Engine(chosen, held, VirtualClock(), [].append)
        ends = {"max_tokens": 3, "ignore_eos": True}
        wishes = [sampling(temperature=1.3, seed=seed, **ends) for seed in range(count)]
        said = np.array(serve(engine, [Request(prompt, wish) for wish in wishes]))
        found.append(said)
    plain = Engine(
        config(pages=900, max_running=64), executor_for(config(pages=900), models[0], "tiny"),
        VirtualClock(), [].append,
    )  # fmt: skip
    # The second token is the first that was drafted: its distribution, given each first one.
    right, wrong = (_fit(said, plain, prompt) for said in found)
    assert right > SURE
    if full:
        assert wrong < SURE, "the broken rule passes"


def _fit(said: np.ndarray, plain: Engine, prompt: np.ndarray) -> float:
    """How well the second tokens, after the commonest first one, fit the model's own."""
    first = int(np.bincount(said[:, 0]).argmax())
    after = np.append(prompt, first).astype(np.int32)
    wish = sampling(temperature=1.3, logprobs=VOCAB, max_tokens=1, ignore_eos=True)
    one = Request(after, wish)
    serve(plain, [one])
    scores = np.array([value for _, value in sorted(one.tops[0])])
    return unlikely(
        said[said[:, 0] == first, 1], rejection.distribution(scores, (1.3, 0, 1.0, 0.0))
    )
