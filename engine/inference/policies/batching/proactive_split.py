"""Proactive split (Nexus, arXiv 2507.06608): foretell both phases' steps, then split the units.

While the cache has room prompts come first: their share grows as long as the decode step stays
within a slack of its time on the whole device. Where the cache is nearly full answers come first,
which free it, and prompts keep a slack of their own. Slacks and the switch are the paper's (its
section 5), as is the unit of a hundredth at a time; how large a change is small it does not say.
"""

from typing import Literal

from engine.core.config import knob
from engine.hardware.split_device import Pair, side_by_side
from engine.inference.policies.batching.side_by_side import LEAST, Seen, SideBySide


class ProactiveSplit(SideBySide):
    """A greedy search from the split that stands; small changes are not made."""

    kind: Literal["proactive_split"] = "proactive_split"
    slack: float = knob(
        1.1, "Decode step over its time on the whole device, at most, while prompts come first",
        low=1.0, high=100.0, unit="×",
    )  # fmt: skip
    prompt_slack: float = knob(
        1.3, "Prefill step over its time on the whole device, at most, while answers come first",
        low=1.0, high=100.0, unit="×",
    )  # fmt: skip
    answers_from: float = knob(
        0.7, "Part of the cache in use from which on answers come first", low=0.0, high=1.0
    )
    stride: float = knob(0.01, "Units that the search moves at a time", low=0.01, high=0.5)
    still: float = knob(0.05, "Changes up to this are not made", low=0.0, high=1.0)
    fault: Literal["none", "no_reading"] = knob(
        "none", "What goes wrong: nothing is foretold of reading memory", group="faults"
    )

    def split(self, steps: Pair, seen: Seen) -> float:
        prefill, decode = steps
        if prefill is None or decode is None:
            return seen.share if prefill is decode else float(decode is None)
        if self.fault == "no_reading":
            prefill, decode = (w._replace(reading_O=0.0 * w.reading_O) for w in (prefill, decode))
        start = min(max(seen.share, LEAST), 1.0 - LEAST)
        found = self._searched((prefill, decode), start, seen.filled >= self.answers_from)
        small = start == seen.share and abs(found - start) <= self.still
        return start if small else found

    def _searched(self, steps: Pair, share: float, answers_first: bool) -> float:
        """The largest share of the phase that comes first that leaves the other its slack."""
        second = 0 if answers_first else 1
        work = steps[second]
        assert work is not None
        most = (self.prompt_slack if answers_first else self.slack) * work.seconds()
        towards = -self.stride if answers_first else self.stride

        def kept(share: float) -> bool:
            return side_by_side(steps, share, self.reach)[second] <= most

        while not kept(share) and LEAST <= share - towards <= 1.0 - LEAST:
            share -= towards
        while LEAST <= share + towards <= 1.0 - LEAST and kept(share + towards):
            share += towards
        return share
