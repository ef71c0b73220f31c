"""One forward, one backward, so that no rank holds more microbatches than there are ranks."""

from typing import Literal

from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe, PipelineSchedule


class OneForwardOneBackward(PipelineSchedule):
    """1F1B with a flush at the end (Narayanan et al., arXiv 2104.04473, section 2.2.1)."""

    kind: Literal["1f1b"] = "1f1b"

    def plan(self, pipe: Pipe) -> Plan:
        return plan(self._rank(rank, pipe) for rank in range(pipe.ranks))

    def _rank(self, rank: int, pipe: Pipe) -> list[Action]:
        ahead = min(pipe.ranks - rank - 1, pipe.microbatches)
        row = [Action(rank, Kind.F, j) for j in range(ahead)]
        for j in range(pipe.microbatches):
            if ahead + j < pipe.microbatches:
                row.append(Action(rank, Kind.F, ahead + j))
            row.append(Action(rank, Kind.B, j))
        return row
