"""Greedy online clustering of traces by a judge's word, and the vote of what is left of them.

In come traces in order and, for each, how likely it is to agree with some earlier ones; out come
clusters (DeepPrune, arXiv 2510.08483, section 4). Only a few members of a cluster are asked about.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic, TypeVar

from engine.core.config import Config, knob

Item = TypeVar("Item")


class Clustering(Config):
    """When a trace is said to repeat others."""

    threshold: float = knob(
        0.5, "A trace joins the cluster it agrees with most, if by more than this",
        low=0.0, high=1.0,
    )  # fmt: skip
    clusters: int = knob(
        0, "Clusters at most, then every trace joins one; 0: no limit", low=0, high=1024
    )
    compared: int = knob(
        1, "Members of a cluster that a trace is compared with, drawn at random", low=1, high=1024
    )


@dataclass(slots=True)
class Clusters(Generic[Item]):
    """The clusters of one question's traces so far, each in order of arrival."""

    rule: Clustering
    chance: Random
    groups: list[list[Item]] = field(default_factory=list)

    def chosen(self) -> list[list[Item]]:
        """Of each cluster, the members that the next trace is compared with."""
        most = self.rule.compared
        return [
            group.copy() if len(group) <= most else self.chance.sample(group, most)
            for group in self.groups
        ]

    def place(
        self, item: Item, judged: Callable[[list[Item]], Sequence[float]]
    ) -> tuple[int, float]:
        """The number of the cluster that `item` joins or opens, and how likely it agrees with it.

        `judged`: for members of all clusters, one after the other, how likely `item` agrees.
        """
        chosen = self.chosen()
        said = list(judged([other for group in chosen for other in group])) if chosen else []
        means, at = [], 0
        for group in chosen:
            means.append(sum(said[at : at + len(group)]) / len(group))
            at += len(group)
        best = max(range(len(means)), key=means.__getitem__, default=-1)
        full = 0 < self.rule.clusters <= len(self.groups)
        if best < 0 or (means[best] <= self.rule.threshold and not full):
            self.groups.append([])
            best = len(self.groups) - 1
        self.groups[best].append(item)
        return best, means[best] if best < len(means) else 1.0


def ballots(groups: Iterable[Sequence[str | None]], weighted: bool) -> list[tuple[str, float]]:
    """(answer, weight) of each trace that has one, from clusters of answers, None for the others.

    `weighted`: what has an answer votes for its whole cluster.
    """
    found = []
    for group in groups:
        ended = [answer for answer in group if answer is not None]
        weight = len(group) / len(ended) if weighted and ended else 1.0
        found += [(answer, weight) for answer in ended]
    return found
