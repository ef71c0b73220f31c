"""Plays Countdown problems with weights that are being trained: parents spawn, children search.

In come problems, out come episodes: every context's tokens, which of them the model drew itself and
how likely each was, and whether the parent's answer replays to the target.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from engine.tasks.countdown import CountdownProblem
from engine.tasks.countdown_traces import (
    EOS,
    JOIN,
    NOTHING,
    NUMBERS,
    PARALLEL,
    child_prompt,
    ids,
    judge,
    messages,
    prompt,
    returned,
    words_of,
)
from engine.training.losses.reinforce_sampling import Drawn, Sampler

ROUNDS = 3  # joins of a parent at most


@dataclass(slots=True)
class Part:
    """One context as it was played. `logprobs`: of own tokens as drawn, 0 for given ones."""

    tokens: list[int] = field(default_factory=list)
    own: list[bool] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)

    def given(self, tokens: Sequence[int]) -> None:
        """Tokens from outside."""
        self.tokens += tokens
        self.own += [False] * len(tokens)
        self.logprobs += [0.0] * len(tokens)

    def drawn(self, found: Drawn) -> None:
        """Tokens that the model drew."""
        self.tokens += found.tokens
        self.own += [True] * len(found.tokens)
        self.logprobs += found.logprobs

    def said(self) -> list[str]:
        """Its own words."""
        return words_of([t for t, own in zip(self.tokens, self.own, strict=True) if own])


@dataclass(slots=True)
class Episode:
    """A problem as it was played: the root context first, then its children's."""

    problem: CountdownProblem
    parts: list[Part]
    right: bool = False

    @property
    def critical(self) -> int:
        """Drawn tokens on the longest chain, where there was one round of children."""
        root, *children = (sum(part.own) for part in self.parts)
        return root + max(children, default=0)


def play(
    sampler: Sampler,
    problems: Sequence[CountdownProblem],
    *,
    window: int,
    children: int,
    temperature: float,
    generator: torch.Generator,
    kind: str = PARALLEL,
) -> list[Episode]:
    """One episode for each problem. Children beyond the `children`th return nothing."""
    episodes = [Episode(problem, [Part()]) for problem in problems]
    for episode in episodes:
        episode.parts[0].given(ids(prompt(kind, episode.problem)))

    def draw(parts: list[Part], stops: set[int]) -> list[Drawn]:
        found = sampler.draw(
            [part.tokens for part in parts],
            window=window, stops=stops, temperature=temperature, generator=generator,
        )  # fmt: skip
        for part, one in zip(parts, found, strict=True):
            part.drawn(one)
        return found

    going = episodes
    for _ in range(ROUNDS + 1):
        found = draw([e.parts[0] for e in going], {NUMBERS[JOIN], NUMBERS[EOS]})
        joined = [
            (e, messages(words_of(one.tokens)))
            for e, one in zip(going, found, strict=True)
            if one.tokens and one.tokens[-1] == NUMBERS[JOIN]
        ]
        started = [_children(episode, asked[:children]) for episode, asked in joined]
        draw([child for some in started for child in some], {NUMBERS[EOS]})
        for (episode, asked), some in zip(joined, started, strict=True):
            answers = [returned(child.said()) for child in some]
            answers += [[NOTHING]] * (len(asked) - len(some))
            episode.parts[0].given([token for answer in answers for token in ids(answer)])
            episode.parts += some
        going = [episode for episode, _ in joined]
    for episode in episodes:
        episode.right = judge(episode.problem, episode.parts[0].said()).right
    return episodes


def _children(episode: Episode, asked: Sequence[Sequence[str]]) -> list[Part]:
    found = []
    for message in asked:
        words = words_of(episode.parts[0].tokens[:3])
        found.append(Part())
        found[-1].given(ids(child_prompt(words, message)))
    return found
