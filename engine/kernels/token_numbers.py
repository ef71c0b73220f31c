"""Token numbers held to a vocabulary (numba): numpy takes longer to begin than a prompt takes to be
read."""

import numpy as np

from engine.kernels.compiled import checked


@checked
def outside(tokens_T: np.ndarray, vocab: int) -> bool:
    """Whether any of `tokens_T` (int32) is below 0, or `vocab` or above."""
    low, high = np.int32(0), np.int32(0)
    for t in range(len(tokens_T)):
        low, high = min(low, tokens_T[t]), max(high, tokens_T[t])
    return bool(low < 0 or high >= vocab)
