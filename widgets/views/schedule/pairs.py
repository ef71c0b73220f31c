"""Measured spans beside modelled ones: the n-th of a name and task in a lane with the n-th."""

import numpy as np


def errors(spans: dict[str, np.ndarray]) -> np.ndarray:
    """How much longer each measured span took than modelled, as a share of the modelled time.

    NaN where a span has no counterpart, and on the modelled ones.
    """
    layer = spans["layer"].astype(bool)
    error = np.full(len(layer), np.nan, np.float32)
    if layer.all() or not layer.any():
        return error
    took = spans["stop"] - spans["start"]
    own = np.stack([spans[k].astype(np.int64) for k in ("row", "kind", "task")], axis=1)
    _, group = np.unique(own, axis=0, return_inverse=True)
    real, modelled = np.flatnonzero(~layer), np.flatnonzero(layer)
    count = int(group.max()) + 1
    one, other = (
        _turn(group[part], spans["start"][part]) * count + group[part] for part in (real, modelled)
    )
    shared, at, of = np.intersect1d(one, other, return_indices=True)
    expected = took[modelled[of]]
    with np.errstate(divide="ignore", invalid="ignore"):
        error[real[at]] = np.where(expected > 0, took[real[at]] / expected - 1, np.nan)
    return error


def _turn(group: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The how-manieth of its group each one is, by start."""
    order = np.lexsort((start, group))
    ranked = group[order]
    first = np.concatenate([[True], ranked[1:] != ranked[:-1]])
    begun = np.maximum.accumulate(np.where(first, np.arange(len(ranked)), 0))
    turn = np.empty(len(group), np.int64)
    turn[order] = np.arange(len(ranked)) - begun
    return turn
