"""Sampling in plain numpy: what the fast one must equal.

Shape letters: R rows, V vocabulary.
"""

import numpy as np

GOLDEN = 0x9E3779B97F4A7C15
FIRST, SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB  # splitmix64 (Steele et al., 2014)
MASK = (1 << 64) - 1


def mix(value: int) -> int:
    """One splitmix64 output: 64 well-mixed bits of `value`."""
    value = (value + GOLDEN) & MASK
    value = ((value ^ (value >> 30)) * FIRST) & MASK
    value = ((value ^ (value >> 27)) * SECOND) & MASK
    return value ^ (value >> 31)


def uniform(seed: int, position: int) -> float:
    """A number in [0, 1) that depends on a request's seed and the token's position only."""
    return (mix(mix(seed) ^ position) >> 11) * 2.0**-53


def greedy(logits_RV: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest token of each row (the lowest among equals) and its log-probability."""
    best_R = logits_RV.argmax(-1).astype(np.int32)
    wide_RV = logits_RV.astype(np.float64)
    top_R = wide_RV.max(-1)
    return best_R, (-np.log(np.exp(wide_RV - top_R[:, None]).sum(-1))).astype(np.float32)


def weights(
    logits_V: np.ndarray, temperature: float, top_k: int, top_p: float, min_p: float
) -> np.ndarray:
    """What is drawn from, unnormalised: softmax cut by top-k, then top-p, then min-p."""
    scaled_V = logits_V.astype(np.float64) / temperature
    weights_V = np.exp(scaled_V - scaled_V.max())
    if 0 < top_k < len(weights_V):
        weights_V[weights_V < np.partition(weights_V, -top_k)[-top_k]] = 0.0
    if top_p < 1:
        order = np.argsort(-weights_V, kind="stable")
        before = np.cumsum(weights_V[order]) - weights_V[order]
        weights_V[order[before >= top_p * weights_V.sum()]] = 0.0
    if min_p > 0:
        weights_V[weights_V < min_p * weights_V.max()] = 0.0
    return weights_V


def sample(
    logits_RV: np.ndarray,
    temperature_R: np.ndarray,
    top_k_R: np.ndarray,
    top_p_R: np.ndarray,
    min_p_R: np.ndarray,
    seed_R: np.ndarray,
    position_R: np.ndarray,
) -> np.ndarray:
    """One token a row; temperature 0 takes the likeliest."""
    tokens_R = greedy(logits_RV)[0]
    for r in np.flatnonzero(temperature_R > 0).tolist():
        sums_V = np.cumsum(
            weights(logits_RV[r], temperature_R[r], int(top_k_R[r]), top_p_R[r], min_p_R[r])
        )
        drawn = uniform(int(seed_R[r]), int(position_R[r])) * sums_V[-1]
        tokens_R[r] = np.searchsorted(sums_V, drawn, side="right")
    return tokens_R
