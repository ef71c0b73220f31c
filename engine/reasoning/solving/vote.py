"""Majority vote over answers to one problem."""

from collections.abc import Iterable


def vote(ballots: Iterable[tuple[str, float]]) -> str:
    """The answer of most weight, the first of equals; "" has no vote. In come (answer, weight)."""
    weights: dict[str, float] = {}
    for answer, weight in ballots:
        if answer:
            weights[answer] = weights.get(answer, 0.0) + weight
    return max(weights, key=weights.__getitem__, default="")
