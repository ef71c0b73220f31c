"""Pipeline schedules written by hand: GPipe, and the two zero-bubble orders of ZB-H1 and ZB-H2.

The latter are 1F1B with its backward in two and the weights late: rank r of p runs `ahead` forwards
before it settles into one forward, one backward for the input and one for the weights, those of a
microbatch `late` turns earlier.
"""

from typing import Literal

from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe, PipelineSchedule


class GPipe(PipelineSchedule):
    """Every microbatch forward, then every one backward (Huang et al., arXiv 1811.06965)."""

    kind: Literal["gpipe"] = "gpipe"

    def plan(self, pipe: Pipe) -> Plan:
        turns = [(kind, j) for kind in (Kind.F, Kind.B) for j in range(pipe.microbatches)]
        return plan([Action(rank, kind, j) for kind, j in turns] for rank in range(pipe.ranks))


class ZeroBubbleH1(PipelineSchedule):
    """ZB-H1 (Qi et al., arXiv 2401.10241, section 2.1): a third of 1F1B's bubble, p activations."""

    kind: Literal["zb_h1"] = "zb_h1"

    def plan(self, pipe: Pipe) -> Plan:
        return split_backward(pipe, 1)


class ZeroBubbleH2(PipelineSchedule):
    """ZB-H2 (Qi et al., arXiv 2401.10241, section 2.2): no bubble for equal passes, 2p - 1
    activations; ranks end as late after one another as they began."""

    kind: Literal["zb_h2"] = "zb_h2"

    def plan(self, pipe: Pipe) -> Plan:
        return split_backward(pipe, 2)


def split_backward(pipe: Pipe, depth: int) -> Plan:
    """The plan in which rank r holds depth (p - r - 1) + 1 microbatches and is depth · r late."""
    rows = []
    for rank in range(pipe.ranks):
        ahead = depth * (pipe.ranks - rank - 1)
        rows.append(_rank(rank, min(ahead, pipe.microbatches), depth * rank, pipe.microbatches))
    return plan(rows)


def _rank(rank: int, ahead: int, late: int, m: int) -> list[Action]:
    row = [Action(rank, Kind.F, j) for j in range(ahead)]
    for j in range(m):
        if ahead + j < m:
            row.append(Action(rank, Kind.F, ahead + j))
        row.append(Action(rank, Kind.I, j))
        if j >= late:
            row.append(Action(rank, Kind.W, j - late))
    return row + [Action(rank, Kind.W, j) for j in range(max(0, m - late), m)]
