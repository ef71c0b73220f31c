"""Same-length groups: of a pool of requests those that are equally long are decoded together.

After EXSPEC (Batch Speculative Decoding Done Right, 2025): sequences of one length need no
realignment, so a pool larger than the batch is kept and a batch is formed of whoever are level;
where too few are, the batch is filled up with others and realigned once. Its authors' code takes a
level batch only where it is a whole one (eBay/spec_dec at 96e1d12), as is the default here.
"""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.policies.policy import Batching, Mix, View


class SameLength(Batching):
    """A step decodes up to `size` requests of the pool, level ones where there are enough."""

    kind: Literal["same_length"] = "same_length"
    size: int = knob(8, "Requests decoded in a step at most", low=1, high=4096)
    enough: float = knob(
        1.0, "Share of the batch that must be level, else it is filled up", low=0.0, high=1.0
    )

    fault: Literal["none", "any_length", "in_turn"] = knob(
        "none", "What goes wrong: rows join a batch in order, whatever their lengths; or a batch's "
        "rows take turns, each in a pass of its own", group="faults",
    )  # fmt: skip

    def mixes(self, view: View) -> tuple[Mix, ...]:
        prefill = Mix(view.decoding[:0], view.budget, admit=view.max_running)
        if not len(view.decoding):
            return (prefill,)
        batch = self.batch(view.decoding, view.rows.cached[view.decoding])
        left = max(0, view.budget - len(batch))
        return (Mix(batch, left, admit=view.max_running), prefill)

    def batch(self, decoding: np.ndarray, cached: np.ndarray) -> np.ndarray:
        """Rows of the commonest length, the shortest among equally common ones, so that nobody
        falls behind; with the next shortest where they are too few."""
        if self.fault == "any_length":
            return decoding[: self.size]
        if self.fault == "in_turn":
            return decoding[:1]
        lengths, which, counts = np.unique(cached, return_inverse=True, return_counts=True)
        commonest = int(counts.argmax())
        level = decoding[which == commonest][: self.size]
        wanted = min(self.size, len(decoding))
        if len(level) >= self.enough * wanted:
            return np.sort(level)
        order = np.argsort(np.abs(cached - lengths[commonest]), kind="stable")
        return np.sort(decoding[order[: self.size]])
