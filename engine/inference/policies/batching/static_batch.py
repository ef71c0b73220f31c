"""Static batching: fill a batch, run it padded until its last request ends, then the next."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.policies.policy import Batching, Mix, View

NOBODY = np.zeros(0, np.int64)
ALL = 1 << 30  # a static batch knows no token budget


class StaticBatch(Batching):
    """Nobody enters a running batch; finished requests stay in it as padding."""

    kind: Literal["static_batch"] = "static_batch"
    size: int = knob(8, "Requests in a batch", low=1, high=4096)

    @property
    def holds_until_all_end(self) -> bool:
        return True

    def mixes(self, view: View) -> tuple[Mix, ...]:
        entering = self.size if view.rows.count == 0 else 0
        together = Mix(NOBODY, ALL, whole_prompts=True, padded=True, admit=entering)
        return (together, Mix(padded=True)) if entering or view.prefilling else (Mix(padded=True),)
