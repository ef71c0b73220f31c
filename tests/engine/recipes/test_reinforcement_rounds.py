"""Episodes to reinforce by: drawn as they are served, as likely as a forward from scratch says."""

import pytest
import torch

from engine.core.paths import dataset
from engine.models.reference import dense
from engine.reasoning.spawning.spawning import SpawningConfig
from engine.recipes.countdown.rounds import given_and_own, played, rounds
from engine.recipes.folder import saved_weights
from engine.tasks.countdown.traces import JOIN, NUMBERS
from engine.training.losses.reinforce import Reinforcement

RECIPE = Reinforcement(steps=1, problems=3, group=2, temperature=0.9)


@pytest.fixture(scope="module")
def model():
    return saved_weights(dataset("models/countdown-imitated"))


@pytest.fixture(scope="module")
def groups(model):
    return rounds(model[0], RECIPE)(model[1], 0)[0]


def test_the_same_round_draws_the_same_episodes_and_a_group_different_ones(model, groups):
    assert rounds(model[0], RECIPE)(model[1], 0)[0] == groups
    assert [len(group) for group in groups] == [2, 2, 2]
    for one, other in groups:
        assert one.parts[0][0][:8] == other.parts[0][0][:8]  # the same problem
        assert one.parts[0][0] != other.parts[0][0]


def test_drawn_tokens_are_as_likely_as_a_forward_from_scratch_says(model, groups):
    drawn = joins = 0
    for episode in (one for group in groups for one in group):
        for tokens, own, logprobs in episode.parts:
            with torch.inference_mode():
                logits_TV = dense(*model, torch.tensor([tokens]))[0] / RECIPE.temperature
            want_TV = logits_TV.log_softmax(-1)
            for place in (n for n, mine in enumerate(own) if mine):
                assert logprobs[place] == pytest.approx(
                    float(want_TV[place - 1, tokens[place]]), abs=1e-3
                )
                drawn += 1
            joins += tokens.count(NUMBERS[JOIN])
    assert drawn > 500 and joins > 0


def test_what_others_returned_is_read_and_not_learnt(groups):
    for episode in (one for group in groups for one in group):
        tokens, own, logprobs = episode.parts[0]
        if NUMBERS[JOIN] in tokens:
            after = tokens.index(NUMBERS[JOIN]) + 1
            assert own[after - 1] and not own[after]
        assert all(value == 0 for value, mine in zip(logprobs, own, strict=True) if not mine)
    assert given_and_own([5, 6], [7, 8, 9], [(1, [3]), (2, [])]) == (
        [5, 6, 7, 3, 8, 9], [False, False, True, False, True, True],
    )  # fmt: skip


def test_episodes_keep_to_the_windows_and_children_that_are_served(model):
    asked = next(iter(SpawningConfig(first=40, problems=1).asked()))
    (family,), reasoner = played(*model, Reinforcement(window=60), [asked])
    assert len(family.children) <= SpawningConfig().children
    assert all(thread.block.length <= 60 for thread in family.threads)
    assert reasoner.table.cache.held == 0
