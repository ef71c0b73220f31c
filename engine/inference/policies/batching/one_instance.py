"""One model instance for each request, taking turns on the device."""

from typing import Literal

import numpy as np

from engine.core.config import knob
from engine.inference.policies.policy import Batching, Mix, View

NOBODY = np.zeros(0, np.int64)


class OneInstance(Batching):
    """A step serves one request alone; the instances take turns."""

    kind: Literal["one_instance"] = "one_instance"
    instances: int = knob(8, "Requests that take turns", low=1, high=4096)

    def mixes(self, view: View) -> tuple[Mix, ...]:
        count = view.rows.count
        prefill = Mix(NOBODY, view.budget, admit=1 if count < self.instances else 0)
        if not count:
            return (prefill,)
        turn = view.step % count
        decoding = view.decoding
        if turn not in decoding:
            # While its pages are on their way another takes the turn.
            later = decoding[decoding > turn]
            other = Mix((later if len(later) else decoding)[:1])
            return (Mix(NOBODY, view.budget, only=turn), prefill, other)
        one = Mix(np.array([turn], np.int64))
        return (prefill, one) if count < self.instances and view.waiting else (one, prefill)
