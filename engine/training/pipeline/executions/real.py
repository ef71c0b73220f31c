"""The plan on real ranks alone."""

from typing import Literal

from engine.core.config import knob
from engine.training.pipeline.on_ranks import OnRanks


class Real(OnRanks):
    """What the ranks did and held, measured."""

    kind: Literal["real"] = knob("real", doc="on real ranks of this machine")

    @property
    def is_modelled(self) -> bool:
        return False
