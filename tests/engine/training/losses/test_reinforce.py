"""Reinforcement: advantages, the clipped objective, draws from weights, and that it learns."""

import math

import numpy as np
import pytest
import torch

from engine.core.clock import VirtualClock
from engine.core.config import update as changed
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.models.config import ModelConfig
from engine.models.reference import dense
from engine.recipes.recipe import Shape
from engine.training.losses.language import fresh_weights
from engine.training.losses.reinforce import (
    Played,
    Reinforcement,
    advantages,
    compared,
    divergence,
    reinforce,
    surrogate,
)
from engine.training.losses.reinforce_sampling import Sampler, pick

STOP = 3


def small() -> ModelConfig:
    return Shape(hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, width=48).llama(20)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(sampler, prompts, window=24, temperature=1.0, seed=0):
    return sampler.draw(
        prompts, window=window, stops={STOP}, temperature=temperature, generator=generator(seed)
    )


@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.0])
def test_drawn_tokens_have_the_log_probabilities_of_a_forward_from_scratch(temperature):
    config = small()
    weights = fresh_weights(config, 1)
    prompts = [[5, 6, 7], [9], [4] * 11, [8, 2], [1, 2, 4, 5, 6, 7]]
    found = draw(Sampler(config, weights), prompts, temperature=temperature)
    for prompt, one in zip(prompts, found, strict=True):
        tokens = prompt + one.tokens
        assert one.tokens[-1] == STOP or len(tokens) == 24
        assert STOP not in one.tokens[:-1]
        logits_TV = dense(config, weights, torch.tensor([tokens]))[0]
        logprobs_TV = (logits_TV / (temperature or 1.0)).log_softmax(-1)
        at_L = torch.arange(len(prompt), len(tokens))
        want_L = logprobs_TV[at_L - 1, torch.tensor(one.tokens)]
        assert torch.allclose(want_L, torch.tensor(one.logprobs), atol=1e-4)
        if not temperature:
            assert logits_TV[at_L - 1].argmax(-1).tolist() == one.tokens


def test_rows_that_end_early_change_nothing_for_the_others():
    config = small()
    sampler = Sampler(config, fresh_weights(config, 2))
    how = {"window": 40, "stops": {3, 5, 8}, "temperature": 0.0, "generator": generator()}
    prompts = [[n, 4 + n * 7 % 15, n + 1] for n in range(4, 18)]
    prompts = [prompt[: 1 + place % 3] for place, prompt in enumerate(prompts)]
    alone = [sampler.draw([prompt], **how)[0].tokens for prompt in prompts]
    together = sampler.draw(prompts, **how)
    assert [one.tokens for one in together] == alone
    ends = {tokens[-1] in how["stops"] for tokens in alone}
    assert ends == {True, False} or len({len(tokens) for tokens in alone}) > 2


def test_a_prompt_that_fills_the_window_gets_nothing():
    config = small()
    found = draw(Sampler(config, fresh_weights(config, 0)), [[5] * 24, [5] * 23, [5] * 30])
    assert [len(one.tokens) for one in found] == [0, 1, 0]


def test_draws_follow_the_probabilities():
    logits_BV = torch.tensor([0.0, math.log(3.0)]).repeat(8000, 1)
    tokens_B, logprobs_B = pick(logits_BV, 1.0, generator())
    assert tokens_B.float().mean().item() == pytest.approx(0.75, abs=0.02)
    assert logprobs_B[tokens_B == 1][0].item() == pytest.approx(math.log(0.75))
    sharper_B, _ = pick(logits_BV, 0.5, generator())
    assert sharper_B.float().mean().item() == pytest.approx(0.9, abs=0.02)


def test_advantages_are_relative_to_the_group():
    assert advantages([1.0, 1.0, 1.0]).tolist() == [0.0, 0.0, 0.0]
    assert advantages([1.0, 0.0, 0.0, 1.0]).tolist() == [1.0, -1.0, -1.0, 1.0]
    assert advantages([1.0, 0.0, 0.0, 0.0], scale=False).tolist() == [0.75, -0.25, -0.25, -0.25]


def test_only_own_tokens_of_unequal_groups_are_learnt():
    part = ([5, 6, 7, 8], [False, True, False, True], [0.0, -1.0, 0.0, -2.0])
    learnt = compared([Played(1.0, [part, part]), Played(0.0, [part])])
    assert [one.advantage for one in learnt] == [1.0, 1.0, -1.0]
    assert learnt[0].example.target_L.tolist() == [6, 8]
    assert learnt[0].logprob_L.tolist() == [-1.0, -2.0]
    assert not compared([Played(1.0, [part]), Played(1.0, [part])])


def test_ratios_beyond_the_clip_give_no_gradient():
    logprob_L = torch.log(torch.tensor([1.5, 0.5, 1.5, 0.5])).requires_grad_()
    advantage_L = torch.tensor([1.0, -1.0, -1.0, 1.0])
    gain_L, clipped = surrogate(logprob_L, torch.zeros(4), advantage_L, 0.2)
    assert gain_L.tolist() == pytest.approx([1.2, -0.8, -1.5, 0.5])
    assert clipped == 2
    gain_L.sum().backward()
    assert logprob_L.grad.tolist() == pytest.approx([0.0, 0.0, -1.5, 0.5])


def test_divergence_is_none_at_the_first_weights_and_positive_elsewhere():
    first_L = torch.tensor([-1.0, -2.0, -0.5])
    assert divergence(first_L, first_L).tolist() == [0.0, 0.0, 0.0]
    assert bool((divergence(first_L + torch.tensor([0.3, -0.4, 0.1]), first_L) > 0).all())


def rewarded(config: ModelConfig, recipe: Reinforcement):
    """Episodes of one context each, good if the first token drawn is a 7."""

    def play(weights, step):
        sampler = Sampler(config, weights)
        prompts = [[4 + n % 8, 9] for n in range(recipe.problems) for _ in range(recipe.group)]
        found = draw(sampler, prompts, window=5, seed=step)
        played = [
            Played(
                float(one.tokens[0] == 7),
                [
                    (
                        p + one.tokens,
                        [False] * 2 + [True] * len(one.tokens),
                        [0.0] * 2 + one.logprobs,
                    )
                ],
            )
            for p, one in zip(prompts, found, strict=True)
        ]
        groups = [played[at : at + recipe.group] for at in range(0, len(played), recipe.group)]
        return groups, {"first": float(np.mean([one.tokens[0] for one in found]))}

    return play


def rewards(events: list) -> list[float]:
    return [e.value for e in events if isinstance(e, Level) and e.name == "reward"]


def test_what_is_rewarded_becomes_likely():
    config, events = small(), []
    recipe = Reinforcement(steps=14, problems=8, group=16, rate=1e-2, kl=0.0, precision="float32")
    weights = fresh_weights(config, 0)
    reinforce(
        config, recipe, weights, rewarded(config, recipe), emit=events.append,
        clock=VirtualClock(),
    )  # fmt: skip
    found = rewards(events)
    assert found[0] < 0.2
    assert found[-1] > 0.8


def test_a_strong_divergence_term_holds_it_back():
    config, apart = small(), []
    for kl in (0.0, 10.0):
        events: list = []
        recipe = Reinforcement(steps=8, problems=8, group=16, rate=1e-2, kl=kl, precision="float32")
        play = rewarded(config, recipe)
        weights = fresh_weights(config, 0)
        reinforce(config, recipe, weights, play, emit=events.append, clock=VirtualClock())
        apart.append(rewards(events)[-1])
    assert apart[0] > apart[1] + 0.2


def test_a_run_resumes_where_it_was(tmp_path):
    config = small()
    ends = []
    for cut in (None, 3):
        place = tmp_path / f"{cut}" / "checkpoint.safetensors"
        place.parent.mkdir()
        recipe = Reinforcement(
            steps=6, problems=2, group=8, rate=1e-3, kl=0.1, checkpoint=3,
            precision="float32",
        )  # fmt: skip
        events: list = []

        def stopping(weights, step, cut=cut, recipe=recipe):
            if step == cut:
                raise KeyboardInterrupt
            return rewarded(config, recipe)(weights, step)

        how = {"emit": events.append, "clock": VirtualClock(), "checkpoint": place}
        if cut is not None:
            with pytest.raises(KeyboardInterrupt):
                reinforce(config, recipe, fresh_weights(config, 0), stopping, **how)
        play = rewarded(config, recipe)
        ends.append(reinforce(config, recipe, fresh_weights(config, 0), play, **how))
        assert any(isinstance(e, Mark) and e.name == "resume" for e in events) == (cut is not None)
    other = changed(recipe, {"rate": 2e-3})
    with pytest.raises(BadInput, match=r"made with rate = 0.001, this run has 0.002; put it back"):
        reinforce(config, other, fresh_weights(config, 0), play, **how)
    for name, weight in ends[0].items():
        assert torch.equal(weight, ends[1][name])
