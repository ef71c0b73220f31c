"""Rejection sampling keeps the target's distribution: chi-square, and a broken rule that fails."""

import math

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.inference.engine import Engine
from engine.inference.executors.tensors import rejection
from engine.inference.executors.tensors.real_executor import executor_for
from engine.inference.requests.request import Request, Sampling, sampling
from engine.models.config import ModelConfig
from engine.models.families import parse
from engine.models.loading.load import random_model
from engine.models.loading.random_weights import RandomWeights
from engine.models.model import Model
from tests.engine.inference.small import TINY, config, serve

VOCAB = 12
LIKELY = [4]  # what nobody drew but everybody drafts
HEAT = 0.08
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


def drawn(
    p_V: np.ndarray, q_V: np.ndarray | None, sure: list[int], count: int, residual: bool
) -> np.ndarray:
    """Tokens of as many seeds, each verified against a draft of its own, or `sure` ones."""
    seen = np.empty(count, np.int64)
    for seed in range(count):
        tokens = sure if q_V is None else [rejection.draft(q_V, seed, 7)]
        seen[seed] = rejection.verify(p_V, q_V, tokens, seed, 7, residual)
    return seen


@pytest.mark.parametrize(
    "certain", [[], LIKELY, [4, 7, 0]], ids=["a model drafts", "a certain draft", "a tree's"]
)
def test_verified_drafts_have_the_targets_distribution(certain, full):
    draw = np.random.default_rng(2)
    p_V = rejection.distribution(draw.normal(0, 1.5, VOCAB), (0.9, 0, 0.97, 0.0))
    q_V = (
        None if certain else rejection.distribution(draw.normal(0, 1.5, VOCAB), (0.9, 0, 1.0, 0.0))
    )
    count = 100_000 if full else 10_000
    assert unlikely(drawn(p_V, q_V, certain, count, residual=True), p_V) > SURE
    assert unlikely(drawn(p_V, q_V, certain, count, residual=False), p_V) < SURE**2, (
        "the broken rule passes"
    )


def test_several_drafts_of_a_model_for_one_place_keep_the_targets_distribution(full):
    draw = np.random.default_rng(3)
    p_V, q_V = (
        rejection.distribution(draw.normal(0, 1.5, VOCAB), (0.9, 0, 1.0, 0.0)) for _ in range(2)
    )
    count = 100_000 if full else 10_000
    seen = np.empty(count, np.int64)
    for seed in range(count):
        drafts = [rejection.draft(q_V, seed ^ (apart << 40), 7) for apart in range(3)]
        seen[seed] = rejection.verify(p_V, q_V, drafts, seed, 7)
    assert unlikely(seen, p_V) > SURE


@pytest.mark.parametrize("drafts", ["ngram", "draft_model", "tree"])
def test_sampled_answers_of_an_engine_have_the_targets_distribution(drafts, full):
    """The first two tokens of many requests, the second drafted and verified by rejection."""
    shape = {"vocab_size": VOCAB, "num_hidden_layers": 1, "eos_token_id": VOCAB - 1}
    own = parse(TINY | shape, "tiny")
    models = [random_model(own, seed=0), Model(own, _other(own), "float32")]
    count = 100_000 if full else 1_500
    prompt = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 11, 3], np.int32)
    plain = Engine(
        config(pages=900, max_running=64), executor_for(config(pages=900), models[0], "tiny"),
        VirtualClock(), [].append,
    )  # fmt: skip
    meant = _pairs(plain, prompt)
    how = {"kind": drafts, "verification": "rejection", "tokens": 2}
    how |= {"shortest": 1} if drafts == "ngram" else {}
    if drafts == "tree":
        how |= {"kind": "draft_model", "branches": 3, "tokens": 6}
    for fault in ("none", "no_residual"):
        chosen = config(
            pages=900, max_running=64, step_tokens=2048, speculation={**how, "fault": fault}
        )
        draft = {"ngram": None, "draft_model": models[1], "tree": models[0]}[drafts]
        held = executor_for(chosen, models[0], "tiny", drafts=[draft] if draft else [])
        engine = Engine(chosen, held, VirtualClock(), lambda event: None, quiet=True)
        wishes = [_wish(seed=seed, max_tokens=3) for seed in range(count)]
        said = np.array(serve(engine, [Request(prompt, wish) for wish in wishes]))
        fits = unlikely(said[:, 0] * VOCAB + said[:, 1], meant)
        if fault == "none":
            assert fits > SURE, f"{count} draws: {fits}"
        else:
            assert fits < SURE**2, f"the broken rule passes: {fits}"


def _other(config: ModelConfig) -> dict[str, torch.Tensor]:
    """Weights that agree with no random model's."""
    draws = torch.Generator().manual_seed(9)
    weights = dict(RandomWeights(config))
    return {
        name: 0.02 * torch.randn(held.shape, generator=draws) if held.ndim > 1 else held
        for name, held in weights.items()
    }


def _wish(**fields) -> Sampling:
    # A random model's logits are near each other: cold enough that it prefers some.
    return sampling(**{"temperature": HEAT, "ignore_eos": True, **fields})


def _pairs(plain: Engine, prompt: np.ndarray) -> np.ndarray:
    """Probabilities of the first two tokens after `prompt`, the first one's times VOCAB + second's,
    from the plain engine's own logits."""

    def after(tokens: list[int]) -> np.ndarray:
        one = Request(np.array(tokens, np.int32), _wish(logprobs=VOCAB, max_tokens=1))
        serve(plain, [one])
        scores = np.array([value for _, value in sorted(one.tops[0])])
        return rejection.distribution(scores, (HEAT, 0, 1.0, 0.0))

    first_V = after(prompt.tolist())
    return np.concatenate(
        [first_V[token] * after([*prompt.tolist(), token]) for token in range(VOCAB)]
    )
