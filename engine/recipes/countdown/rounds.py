"""Reinforcement rounds of Countdown: a group of episodes of each train problem, on the engine.

The weights that learn draw as the shipped ones serve: through `solve` and `Spawning`, with the same
window, children and joins, and each token's log-probability is the engine's own. The shipped
`countdown-reinforced` is older: its episodes had three joins at most and other draws, so its recipe
makes other weights now.
"""

from collections.abc import Sequence

import numpy as np
import torch

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.models.config import ModelConfig
from engine.models.model import Model
from engine.reasoning.solving.method import Asked
from engine.reasoning.solving.solve import Listener, solve
from engine.reasoning.spawning.spawning import Family, Spawning, SpawningConfig
from engine.reasoning.threads.loaded_model import loaded_model_of
from engine.reasoning.threads.reasoner import Reasoner
from engine.tasks.countdown.search import even_problem
from engine.tasks.countdown.traces import EOS, NUMBERS, judge, words_of
from engine.training.losses.reinforce import Play, Played, Reinforcement, Weights

FIRST = 1 << 30  # problems that nobody imitated
PER_SEED = 1 << 20
TOGETHER = 64  # episodes under way at once: so many threads fill matrix products
SEEDS = 1 << 52  # of roots; their children's are a thousand times as large


def rounds(config: ModelConfig, recipe: Reinforcement, search: str = "parallel") -> Play:
    """How `reinforce` plays: reward 1 where the parent's answer is right, else 0.

    `search`: the prompt's first word, whether it may spawn children or goes serially.
    """

    def round(weights: Weights, step: int) -> tuple[list[list[Played]], dict[str, float]]:
        first = FIRST + recipe.seed * PER_SEED + step * recipe.problems
        problems = [even_problem("train", first + place) for place in range(recipe.problems)]
        seed = (recipe.seed * PER_SEED + step) * recipe.problems * recipe.group
        asked = [
            Asked(place, problems[place // recipe.group], (seed + place) % SEEDS)
            for place in range(recipe.problems * recipe.group)
        ]
        families, reasoner = played(config, weights, recipe, asked, search)
        logits_NV = np.concatenate([logits for _, logits in reasoner.kept])
        found = [episode(family, reasoner, logits_NV, recipe.temperature) for family in families]
        groups = [found[at : at + recipe.group] for at in range(0, len(found), recipe.group)]
        return groups, figures(families)

    return round


def played(
    config: ModelConfig, weights: Weights, recipe: Reinforcement, asked: Sequence[Asked],
    search: str = "parallel",
) -> tuple[list[Family], Reasoner]:  # fmt: skip
    """A family of threads for each problem, in order, and the reasoner with what they wrote."""
    spawning = SpawningConfig()
    threads = TOGETHER * (1 + spawning.children)
    changes = {
        "search": search,
        "window": recipe.window, "sampling.temperature": recipe.temperature, "keep_logits": True,
        "together": TOGETHER, "threads": threads,
        "pages": threads * (recipe.window // spawning.page_size + 2),
    }  # fmt: skip
    spawning = update(spawning, changes)
    held = {name: weight.detach() for name, weight in weights.items()}
    loaded = loaded_model_of(
        spawning.reasoning(), Model(config, held), "learning", eos=(NUMBERS[EOS],)
    )
    clock = VirtualClock()
    reasoner = Reasoner(spawning.reasoning(), loaded, clock, lambda event: None)
    families: list[Family] = []
    method = Spawning(spawning, reasoner)
    solve(method, asked, clock, Listener.silent(), families.append)
    return sorted(families, key=lambda family: family.asked.number), reasoner


def episode(
    family: Family, reasoner: Reasoner, logits_NV: np.ndarray, temperature: float
) -> Played:
    """A family as reinforcement reads it: every thread's tokens share its reward."""
    root, record = family.root, reasoner.table.record
    assert record is not None
    contexts = [given_and_own(family.prompt, root.tokens, family.heard)]
    contexts += [
        given_and_own(prompt, child.tokens, [])
        for prompt, child in zip(family.prompts, family.children, strict=True)
    ]
    parts = []
    for thread, (tokens, own) in zip(family.threads, contexts, strict=True):
        rows = record.rows[f"{thread.name}/1"]
        scores_LV = torch.from_numpy(logits_NV[rows]) / temperature
        logprobs_LV = scores_LV.log_softmax(-1)
        logprobs = [
            float(logprobs_LV[place - 1, token]) if drawn else 0.0
            for place, (token, drawn) in enumerate(zip(tokens, own, strict=True))
        ]
        parts.append((tokens, own, logprobs))
    right = judge(family.asked.problem, words_of(root.tokens)).right  # type: ignore[arg-type]
    return Played(float(right), parts)


def given_and_own(
    prompt: Sequence[int], said: Sequence[int], heard: Sequence[tuple[int, list[int]]]
) -> tuple[list[int], list[bool]]:
    """A context's tokens and which of them its thread drew itself.

    `heard`: after how many of its own it read what else.
    """
    tokens, own, done = list(prompt), [False] * len(prompt), 0
    for after, given in (*heard, (len(said), [])):
        tokens += said[done:after]
        own += [True] * (after - done)
        tokens += given
        own += [False] * len(given)
        done = after
    return tokens, own


def figures(families: Sequence[Family]) -> dict[str, float]:
    """Means over the episodes of a round: children, tokens drawn, tokens on the longest chain."""
    columns = {
        "children": [len(family.children) for family in families],
        "tokens": [family.tokens for family in families],
        "critical": [family.depth for family in families],
    }
    return {name: float(np.mean(values)) for name, values in columns.items()}
