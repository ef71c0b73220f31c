"""The plan on real ranks, and under it on the virtual clock, fed with the measured pass times."""

from typing import Literal

from engine.core.config import knob
from engine.training.pipeline.on_ranks import OnRanks


class Both(OnRanks):
    """One axis for what happened and what the clock expects of such passes."""

    kind: Literal["both"] = knob("both", doc="real ranks above the virtual clock, on one axis")

    @property
    def is_modelled(self) -> bool:
        return True
