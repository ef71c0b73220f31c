"""Zero bubble by hand within 1F1B's memory."""

from typing import Literal

from engine.training.handcrafted import split_backward
from engine.training.pipeline_schedule import Pipe, PipelineSchedule
from engine.training.plan import Plan


class ZeroBubbleH1(PipelineSchedule):
    """ZB-H1 (Qi et al., arXiv 2401.10241, section 2.1): a third of 1F1B's bubble, p activations."""

    kind: Literal["zb_h1"] = "zb_h1"

    def plan(self, pipe: Pipe) -> Plan:
        return split_backward(pipe, 1)
