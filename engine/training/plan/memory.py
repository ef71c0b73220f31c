"""Activations that each rank holds, counted in whole microbatches of a rank's layers.

A forward keeps them. A whole backward lets go of all; the backward for the input of all but the
`kept` share, which the backward for the weights needs (Qi et al., arXiv 2401.10241, section 3.2:
M_B and M_W, `kept` = M_W / M_B).
"""

import numpy as np

from engine.training.plan.columns import B, Columns, F, I, W


def changes(table: Columns, chunks: int, kept: float) -> tuple[np.ndarray, np.ndarray]:
    """(taken when an action starts, let go when it stops) for each action, in activations."""
    taken = np.where(table.kind == F, 1.0, 0.0) / chunks
    let_go = np.select(
        [table.kind == B, table.kind == I, table.kind == W], [1.0, 1.0 - kept, kept], 0.0
    )
    return taken, let_go / chunks


def held(table: Columns, chunks: int, kept: float = 1.0) -> np.ndarray:
    """[actions, 2]: what its rank holds from each action's start on, and from its stop on."""
    taken, let_go = changes(table, chunks, kept)
    steps = np.stack([taken, -let_go], axis=1).reshape(-1)
    running = np.concatenate([[0.0], np.cumsum(steps)])
    before = np.repeat(running[2 * table.first[:-1]], 2 * np.diff(table.first))
    return (running[1:] - before).reshape(-1, 2)


def peaks(table: Columns, chunks: int, kept: float = 1.0) -> np.ndarray:
    """The most activations each rank holds at once."""
    level = held(table, chunks, kept)[:, 0]
    spans = zip(table.first[:-1], table.first[1:], strict=True)
    return np.array([level[first:last].max(initial=0.0) for first, last in spans])
