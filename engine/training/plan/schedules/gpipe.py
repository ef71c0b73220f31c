"""All forwards, then all backwards."""

from typing import Literal

from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe, PipelineSchedule


class GPipe(PipelineSchedule):
    """Every microbatch forward, then every one backward (Huang et al., arXiv 1811.06965)."""

    kind: Literal["gpipe"] = "gpipe"

    def plan(self, pipe: Pipe) -> Plan:
        turns = [(kind, j) for kind in (Kind.F, Kind.B) for j in range(pipe.microbatches)]
        return plan([Action(rank, kind, j) for kind, j in turns] for rank in range(pipe.ranks))
