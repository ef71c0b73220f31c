"""Alternating groups: while one group of requests is verified, the next step's is drafted for.

After CoSine (Collaborative Speculative Inference, 2025), which takes drafting and verification
apart: a request that has been verified leaves the target to others while its next drafts are made.
"""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.policies.policy import Batching, Mix, View


class Alternating(Batching):
    """Requests decode in groups that take turns, by the order in which they arrived."""

    kind: Literal["alternating"] = "alternating"
    groups: int = knob(2, "Groups that take turns; 1: all requests decode in each step", low=1,
                       high=16)  # fmt: skip

    def mixes(self, view: View) -> tuple[Mix, ...]:
        batch = self.batch(view)
        left = max(0, view.budget - len(batch))
        prefill = Mix(batch[:0], view.budget, admit=view.max_running)
        return (Mix(batch, left, admit=view.max_running), prefill)

    def batch(self, view: View) -> np.ndarray:
        """Rows of the group whose turn it is, or of the next that has any."""
        decoding = view.decoding
        numbers = np.array([view.running[row].number for row in decoding.tolist()], np.int64)
        for ahead in range(self.groups):
            group = decoding[(numbers - view.step - ahead) % self.groups == 0]
            if len(group):
                return group
        return decoding[:0]
