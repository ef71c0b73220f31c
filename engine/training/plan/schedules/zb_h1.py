"""Zero bubble by hand within 1F1B's memory."""

from typing import Literal

from engine.training.plan.actions import Plan
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.split_backward import split_backward


class ZeroBubbleH1(PipelineSchedule):
    """ZB-H1 (Qi et al., arXiv 2401.10241, section 2.1): a third of 1F1B's bubble, p activations."""

    kind: Literal["zb_h1"] = "zb_h1"

    def plan(self, pipe: Pipe) -> Plan:
        return split_backward(pipe, 1)
