"""The two zero-bubble orders drawn by hand: 1F1B with its backward in two and the weights late.

Rank r of p runs `ahead` forwards before it settles into one forward, one backward for the input and
one for the weights, those of a microbatch `late` turns earlier.
"""

from engine.training.plan.actions import Action, Kind, Plan, plan
from engine.training.plan.schedule import Pipe


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
