"""Zero bubble by hand with twice 1F1B's memory."""

from typing import Literal

from engine.training.plan.actions import Plan
from engine.training.plan.schedule import Pipe, PipelineSchedule
from engine.training.plan.split_backward import split_backward


class ZeroBubbleH2(PipelineSchedule):
    """ZB-H2 (Qi et al., arXiv 2401.10241, section 2.2): no bubble for equal passes, 2p - 1
    activations; ranks end as late after one another as they began."""

    kind: Literal["zb_h2"] = "zb_h2"

    def plan(self, pipe: Pipe) -> Plan:
        return split_backward(pipe, 2)
