"""Learning rate by step: warm-up, a stable stretch, then a cosine down to nothing.

The stable rate does not depend on how many steps follow, so a run can be cut short or extended from
any checkpoint before the decay and still be exactly the run of the shorter or longer recipe
(warmup-stable-decay: Hu et al., arXiv 2404.06395, section 4).
"""

import math


def learning_rate(step: int, steps: int, peak: float, warmup: int, decay: int) -> float:
    """The rate of `step`, the first being 0: up to `peak` in `warmup` steps, down in `decay`."""
    if step < warmup:
        return peak * (step + 1) / warmup
    left = steps - step
    if left > decay:
        return peak
    return peak * 0.5 * (1 - math.cos(math.pi * left / (decay + 1)))
