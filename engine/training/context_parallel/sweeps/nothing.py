"""No curves."""

from typing import TYPE_CHECKING, Literal

from engine.core.config import knob
from engine.core.run import Live
from engine.training.context_parallel.sweep import Sweep

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig


class Nothing(Sweep):
    """The run alone."""

    kind: Literal["nothing"] = knob("nothing", doc="no curves")

    def draw(self, config: "SequenceConfig", live: Live) -> None:
        return
