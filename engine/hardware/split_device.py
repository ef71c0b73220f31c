"""Split device: how long two steps take side by side, each on a part of the compute units.

An operation takes the longer of its arithmetic, which goes with its share of the units, and its
reading, which does not until the share is small: a part of the units can draw more than its part of
the bandwidth. What both draw together is never more than there is.
"""

from typing import NamedTuple, TypeAlias

import numpy as np


class Work(NamedTuple):
    """A step by operations: seconds of arithmetic on all units, seconds of reading at the full
    bandwidth, and what depends on neither."""

    computing_O: np.ndarray
    reading_O: np.ndarray
    fixed: float

    def seconds(self, share: float = 1.0, bandwidth: float = 1.0) -> float:
        """With a share of the units and one of the bandwidth; by default the device's own time."""
        both_O = np.maximum(self.computing_O / share, self.reading_O / bandwidth)
        return self.fixed + float(both_O.sum())


Pair: TypeAlias = tuple[Work | None, Work | None]  # of a prefill and a decode step under way


def side_by_side(steps: Pair, share: float, reach: float) -> tuple[float, float]:
    """Seconds of both steps while both go on, the prefill step with `share` of the units.

    A share draws up to `reach` times its part of the bandwidth, and no more than what the other
    leaves of it, or half where both want more than that.
    """
    own = share, 1.0 - share
    most = [min(1.0, reach * part) for part in own]
    drawn = [
        0.0 if work is None or part <= 0 else float(work.reading_O.sum()) / work.seconds(part, top)
        for work, part, top in zip(steps, own, most, strict=True)
    ]
    found = [0.0, 0.0]
    for n, work in enumerate(steps):
        if work is not None:
            left = max(0.5, 1.0 - drawn[1 - n])
            found[n] = work.seconds(own[n], min(most[n], left)) if own[n] > 0 else np.inf
    return found[0], found[1]
