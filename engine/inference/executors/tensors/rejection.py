"""Rejection sampling of drafts (speculative sampling): the target's distribution, whoever drafted.

A draft x drawn from q is kept with probability min(1, p(x) / q(x)); one that is refused is drawn
again from max(0, p - q) (Leviathan et al., arXiv 2211.17192; Chen et al., arXiv 2302.01318). Of
several drafts for one place each is held against what the refusals before it left of p (Miao et
al., arXiv 2305.09781). Draws depend on seed and position alone. Shape letters: V vocabulary.
"""

from collections.abc import Sequence

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
    p_V: np.ndarray, q_V: np.ndarray | None, tokens: Sequence[int], seed: int, position: int,
    residual: bool = True,
) -> int:  # fmt: skip
    """The token for `position`: one of the drafts `tokens`, or another where all are refused.

    `q_V` is what each draft was drawn from; None where they were no draws but certain, and then
    unlike each other. Without `residual`, a mistake, a refused draft is drawn again from all of
    `p_V`.
    """
    left_V = p_V
    for number, token in enumerate(tokens):
        had = 1.0 if q_V is None else float(q_V[token])
        total = float(left_V.sum()) if number else 1.0
        stream = mix(seed ^ ACCEPT) if not number else mix(mix(seed ^ ACCEPT) ^ number)
        if uniform(stream, position) * had * total < left_V[token]:
            return token
        if q_V is None:
            left_V = left_V.copy()
            left_V[token] = 0.0
        else:
            left_V = np.maximum(left_V / total - q_V, 0.0)
        if not left_V.any():  # p = q but for rounding: nothing can be refused
            return token
    return choose(left_V if residual else p_V, seed, position)
