"""Phases side by side: prompts on some compute units, answers on the others, in steps of their own.

Both phases have one scheduler and one cache, so that nothing is sent when a prompt is computed.
"""

from abc import abstractmethod
from typing import Literal, NamedTuple

import numpy as np

from engine.core.config import knob
from engine.hardware.split_device import Pair
from engine.inference.policies.policy import Batching, Mix, View

LEAST = 0.05  # of the units, for a phase that has a step under way
NOBODY = np.zeros(0, np.int64)


class Seen(NamedTuple):
    """What a split may go by besides the steps under way."""

    share: float  # of the units, that prefill has so far
    filled: float  # part of the cache in use
    took: float  # seconds of the last decode step


class SideBySide(Batching):
    """A step is of one phase; how the units are split is decided whenever a step begins or ends."""

    reach: float = knob(
        2.0, "Bandwidth that a part of the units draws at most, of its own part", low=1.0,
        high=16.0, unit="×",
    )  # fmt: skip

    @abstractmethod
    def split(self, steps: Pair, seen: Seen) -> float:
        """The share of the units that prefill gets, for the steps under way."""

    def mixes(self, view: View) -> tuple[Mix, ...]:
        prefill, decode = Mix(NOBODY, view.budget, admit=view.max_running), Mix()
        if view.phase:
            return (prefill,) if view.phase == "prefill" else (decode,)
        # Where nothing can be split the phases take turns.
        return (prefill, decode) if view.step % 2 == 0 else (decode, prefill)


class FixedSplit(SideBySide):
    """The same split always, whatever is to do."""

    kind: Literal["fixed_split"] = "fixed_split"
    share: float = knob(0.5, "Units of prefill", low=0.05, high=0.95)

    def split(self, steps: Pair, seen: Seen) -> float:
        return self.share


class ReactiveSplit(SideBySide):
    """A feedback loop: units go to decode when its last step was late, to prefill when not."""

    kind: Literal["reactive_split"] = "reactive_split"
    target: float = knob(0.02, "Decode step to keep", low=1e-4, high=10.0, unit="s", log=True)
    stride: float = knob(0.05, "Units that move at a time", low=0.01, high=0.5)

    def split(self, steps: Pair, seen: Seen) -> float:
        prefill, decode = steps
        if prefill is None or decode is None:
            return seen.share if prefill is decode else float(decode is None)
        moved = seen.share + (-self.stride if seen.took > self.target else self.stride)
        return min(max(moved, LEAST), 1.0 - LEAST)
