"""Rounds of Countdown to reinforce by: train problems, a group of episodes of each."""

from collections.abc import Callable

import torch

from engine.models.config import ModelConfig
from engine.recipes.countdown_episodes import Episode, play
from engine.tasks.countdown_search import even_problem
from engine.training.losses.reinforce import Play, Played, Reinforcement, Weights
from engine.training.losses.reinforce_sampling import Sampler

FIRST = 1 << 30  # problems that nobody imitated
PER_SEED = 1 << 20
CHILDREN = 8


def rounds(config: ModelConfig, recipe: Reinforcement) -> Play:
    """How `reinforce` plays: reward 1 where the parent's answer is right, else 0."""

    def round(weights: Weights, step: int) -> tuple[list[list[Played]], dict[str, float]]:
        first = FIRST + recipe.seed * PER_SEED + step * recipe.problems
        problems = [even_problem("train", first + place) for place in range(recipe.problems)]
        episodes = play(
            Sampler(config, weights),
            [problem for problem in problems for _ in range(recipe.group)],
            window=recipe.window,
            children=CHILDREN,
            temperature=recipe.temperature,
            generator=torch.Generator().manual_seed(recipe.seed * PER_SEED + step),
        )
        played = [played_of(episode) for episode in episodes]
        groups = [played[at : at + recipe.group] for at in range(0, len(played), recipe.group)]
        return groups, figures(episodes)

    return round


def played_of(episode: Episode) -> Played:
    """The episode as reinforcement reads it: every thread's tokens share its reward."""
    parts = [(part.tokens, part.own, part.logprobs) for part in episode.parts]
    return Played(float(episode.right), parts)


def figures(episodes: list[Episode]) -> dict[str, float]:
    """Means over the episodes of a round: children, tokens drawn, tokens on the longest chain."""
    measures: dict[str, Callable[[Episode], int]] = {
        "children": lambda episode: len(episode.parts) - 1,
        "tokens": lambda episode: sum(sum(part.own) for part in episode.parts),
        "critical": lambda episode: episode.critical,
    }
    return {name: sum(map(measure, episodes)) / len(episodes) for name, measure in measures.items()}
