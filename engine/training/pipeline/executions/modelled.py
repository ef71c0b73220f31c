"""The plan on the virtual clock alone, with the pass times of the config."""

from typing import TYPE_CHECKING, Literal

from engine.core.clock import Clock, VirtualClock
from engine.core.config import knob
from engine.core.run import Live
from engine.training.pipeline.execution import Carried, Execution
from engine.training.pipeline.faults import DescribedFaults

if TYPE_CHECKING:
    from engine.training.pipeline.config import PipelineConfig, Worked


class Modelled(Execution):
    """Nothing is computed: a thousand devices or four."""

    kind: Literal["modelled"] = knob("modelled", doc="on the virtual clock")
    faults: DescribedFaults = knob(make=DescribedFaults, doc="steps, uneven passes, failures")

    @property
    def is_real(self) -> bool:
        return False

    @property
    def is_modelled(self) -> bool:
        return True

    def clock(self) -> Clock:
        return VirtualClock()

    def carry_out(self, config: "PipelineConfig", made: "Worked", live: Live) -> Carried | None:
        return None
