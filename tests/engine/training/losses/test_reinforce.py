"""Reinforcement: advantages, the clipped objective, and that it learns."""

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


def small() -> ModelConfig:
    return Shape(hidden=32, layers=2, heads=4, kv_heads=2, head_dim=8, width=48).llama(20)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def draw(config, weights, prompts, length, seed=0):
    """Tokens of each prompt's continuation, so long in all, and how likely each was."""
    tokens_BT = torch.tensor(prompts)
    chance, logprobs = generator(seed), []
    for _ in range(length - tokens_BT.shape[1]):
        with torch.inference_mode():
            logprobs_BV = dense(config, weights, tokens_BT)[:, -1].log_softmax(-1)
        drawn_B1 = torch.multinomial(logprobs_BV.exp(), 1, generator=chance)
        logprobs.append(logprobs_BV.gather(1, drawn_B1))
        tokens_BT = torch.cat([tokens_BT, drawn_B1], 1)
    said_BT = tokens_BT[:, len(prompts[0]) :]
    return said_BT.tolist(), torch.cat(logprobs, 1).tolist()


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
        held = {name: weight.detach() for name, weight in weights.items()}
        prompts = [[4 + n % 8, 9] for n in range(recipe.problems) for _ in range(recipe.group)]
        said, logprobs = draw(config, held, prompts, 5, seed=step)
        played = [
            Played(
                float(tokens[0] == 7),
                [(p + tokens, [False] * 2 + [True] * len(tokens), [0.0] * 2 + likely)],
            )
            for p, tokens, likely in zip(prompts, said, logprobs, strict=True)
        ]
        groups = [played[at : at + recipe.group] for at in range(0, len(played), recipe.group)]
        return groups, {"first": float(np.mean([tokens[0] for tokens in said]))}

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
