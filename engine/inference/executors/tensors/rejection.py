"""Rejection sampling of drafts (speculative sampling): the target's distribution, whoever drafted.

A draft x drawn from q is kept with probability min(1, p(x) / q(x)); one that is refused is drawn
again from max(0, p - q) (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318). Draws
depend on seed and position alone. Shape letters: V vocabulary.
"""

import numpy as np

from engine.kernels.draws import mix, uniform
from engine.kernels.sample.reference import choose, weights

Cuts = tuple[float, int, float, float]  # temperature, top-k, top-p, min-p
ACCEPT, DRAFT = 0xACCE97, 0xD12AF7  # streams of draws beside the one that tokens come from


def distribution(scores_V: np.ndarray, cuts: Cuts) -> np.ndarray:
    """Probabilities that a token is drawn with from adjusted logits, float64."""
    weights_V = weights(scores_V, *cuts)
    return weights_V / weights_V.sum()


def draft(q_V: np.ndarray, seed: int, position: int) -> int:
    """A token drawn from `q_V` for `position`, on no stream that verification draws from."""
    return choose(q_V, mix(seed ^ DRAFT), position)


def verify(
    p_V: np.ndarray, q_V: np.ndarray | None, token: int, seed: int, position: int,
    residual: bool = True,
) -> int:  # fmt: skip
    """The token for `position`: the draft `token`, or another where it is refused.

    `q_V` is what the draft was drawn from; None where it was no draw but certain. Without
    `residual`, a mistake, a refused draft is drawn again from all of `p_V`.
    """
    had = 1.0 if q_V is None else float(q_V[token])
    if uniform(mix(seed ^ ACCEPT), position) * had < p_V[token]:
        return token
    if not residual:
        return choose(p_V, seed, position)
    if q_V is None:
        left_V = p_V.copy()
        left_V[token] = 0.0
    else:
        left_V = np.maximum(p_V - q_V, 0.0)
    if not left_V.any():  # p = q but for rounding: nothing can be refused
        return token
    return choose(left_V, seed, position)
