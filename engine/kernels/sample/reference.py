"""Sampling in plain numpy, one row after another: what the compiled kernels must equal.

The engine runs this where kernels are not compiled yet. Shape letters: R rows, V vocabulary.
"""

from typing import NamedTuple

import numpy as np

from engine.kernels.draws import uniform


class Wishes(NamedTuple):
    """How each row is drawn; temperature 0 takes the likeliest.

    top_k 0, top_p 1 and min_p 0 cut nothing. The draw depends on seed and position only.
    """

    temperature_R: np.ndarray
    top_k_R: np.ndarray
    top_p_R: np.ndarray
    min_p_R: np.ndarray
    seed_R: np.ndarray
    position_R: np.ndarray


def greedy(logits_RV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest token of each row (the lowest among equals) and its log-probability."""
    best_R = logits_RV.argmax(-1).astype(np.int32)
    logprob_R = np.empty(len(best_R), np.float32)
    for r, logits_V in enumerate(logits_RV):
        logprob_R[r] = -np.log(np.exp(logits_V.astype(np.float64) - logits_V[best_R[r]]).sum())
    return best_R, logprob_R


def weights(
    logits_V: np.ndarray, temperature: float, top_k: int, top_p: float, min_p: float
) -> np.ndarray:
    """What is drawn from, the largest 1: softmax cut by top-k, then top-p, then min-p.

    Each cut sees the distribution that the one before left.
    """
    weights_V = np.exp((logits_V.astype(np.float64) - float(logits_V.max())) / temperature)
    if 0 < top_k < len(weights_V):
        weights_V[weights_V < np.partition(weights_V, -top_k)[-top_k]] = 0.0
    if top_p < 1:
        order = np.argsort(-weights_V, kind="stable")
        before = np.cumsum(weights_V[order]) - weights_V[order]
        weights_V[order[before >= top_p * weights_V.sum()]] = 0.0
    if min_p > 0:
        weights_V[weights_V < min_p] = 0.0
    return weights_V


def choose(weights_V: np.ndarray, seed: int, position: int) -> int:
    """An index drawn in proportion to `weights_V` (not all zero)."""
    sums_V = np.cumsum(weights_V, dtype=np.float64)
    index = int(np.searchsorted(sums_V, uniform(seed, position) * sums_V[-1], side="right"))
    return min(index, int(np.flatnonzero(weights_V)[-1]))


def sample(logits_RV: np.ndarray, wishes: Wishes) -> np.ndarray:
    """One token a row, int32."""
    tokens_R = logits_RV.argmax(-1).astype(np.int32)
    for r in np.flatnonzero(wishes.temperature_R > 0).tolist():
        temperature, top_k, top_p, min_p, seed, position = (column[r] for column in wishes)
        weights_V = weights(logits_RV[r], temperature, int(top_k), top_p, min_p)
        tokens_R[r] = choose(weights_V, int(seed), int(position))
    return tokens_R
