"""The plan on the virtual clock alone, with the pass times of the config."""

from typing import ClassVar, Literal

from engine.core.config import knob
from engine.core.run import Live
from engine.training.pipeline.executor import Carried, PipelineExecutor
from engine.training.pipeline.faults import DescribedFaults
from engine.training.pipeline.job import Job


class Modelled(PipelineExecutor):
    """Nothing is computed: a thousand devices or four."""

    real: ClassVar[bool] = False
    modelled: ClassVar[bool] = True
    kind: Literal["modelled"] = knob("modelled", doc="on the virtual clock")
    faults: DescribedFaults = knob(make=DescribedFaults, doc="steps, uneven passes, failures")

    def carry_out(self, job: Job, live: Live) -> Carried | None:
        return None
