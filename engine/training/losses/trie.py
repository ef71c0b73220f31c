"""Trajectories that fork and join, packed as one trie: what they share is computed once.

In come (context, completion) units in tokens, one for each request that a trajectory took; out
comes an `Example` whose tokens see their ancestors alone and stand where they stand on their own
path (arXiv 2512.07843). Shape letters: N nodes, L predictions.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.training.data.packing import Example
from engine.training.losses.examples import completed

ROOT = -1


class Unit(NamedTuple):
    """What one request read and what it learns to say after it. Neither may be empty."""

    context: Sequence[int]
    completion: Sequence[int]


def trie(units: Iterable[Unit], siblings_apart: bool = True) -> Example:
    """All `units` as one example; its loss and gradients are those of `separate(units)` together.

    A prediction that several units learn at one place counts once for each. Without
    `siblings_apart` a token sees whatever lies before it, its siblings too: a mistake, to be seen.
    """
    places: dict[tuple[int, int], int] = {}  # (parent, token) -> node
    parents: list[int] = []
    tokens: list[int] = []
    learnt: dict[tuple[int, int], float] = {}  # (node, token after it) -> weight
    for unit in units:
        node = ROOT
        for place, token in enumerate((*unit.context, *unit.completion)):
            if place >= len(unit.context):
                learnt[node, token] = learnt.get((node, token), 0.0) + 1.0
            before, node = node, places.setdefault((node, token), len(tokens))
            if node == len(tokens):
                tokens.append(token)
                parents.append(before)
    depth_N, sees_NN = _ancestors(parents)
    at_L, target_L = np.array(list(learnt), np.int64).reshape(-1, 2).T
    weight_L = np.array(list(learnt.values()), np.float32)
    if not siblings_apart:
        sees_NN = np.tri(len(tokens), dtype=bool)
    return Example(np.array(tokens, np.int64), at_L, target_L, weight_L, depth_N, sees_NN)


def separate(units: Iterable[Unit]) -> list[Example]:
    """Each unit as an example of its own: what the trie has to equal."""
    return [completed(list(unit.context), list(unit.completion)) for unit in units]


def _ancestors(parents: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Each node's depth, and whom it sees: its ancestors and itself. Parents come first."""
    depth_N = np.zeros(len(parents), np.int64)
    sees_NN = np.eye(len(parents), dtype=bool)
    for node, parent in enumerate(parents):
        if parent != ROOT:
            depth_N[node] = depth_N[parent] + 1
            sees_NN[node] |= sees_NN[parent]
    return depth_N, sees_NN
