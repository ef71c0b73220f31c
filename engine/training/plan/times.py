"""When each action of a plan happens, from what passes and transfers take.

Takes a plan and its costs, gives start and stop of every action in seconds; nothing is simulated
that the plan does not say, so this is the longest path through its dependencies.
"""

from dataclasses import dataclass

import numpy as np

from engine.core.errors import BadInput
from engine.training.plan.actions import Kind, Plan
from engine.training.plan.columns import CODES, NOBODY, B, Columns, F, I, columns
from engine.training.plan.deadlock import stuck
from engine.training.plan.walk import walk


@dataclass(frozen=True)
class Costs:
    """What things take. `passes` [kinds, stages]: seconds of each kind (as CODES numbers them) on
    each stage. `transfers` [ranks, ranks]: seconds from one rank to another for the tensor of one
    microbatch. `together`: no rank's optimiser begins before every rank has done its passes.
    `after` [kinds, stages]: seconds between the end of a pass and the next one of its rank, where
    that waits for nothing; None: none. `own` [actions]: what each took where that was measured, in
    place of `passes`, in the order of the plan's columns. `first_alone`: of the microbatches that
    go round from the last rank to the next chunk in one group, the first alone waits for its
    tensor; the others begin as soon as their rank is free, even before theirs is there."""

    passes: np.ndarray
    transfers: np.ndarray
    together: bool = False
    after: np.ndarray | None = None
    own: np.ndarray | None = None
    first_alone: bool = False

    @classmethod
    def even(
        cls,
        given: Plan,
        forward: float = 1.0,
        backward_input: float = 1.0,
        backward_weight: float = 1.0,
        transfer: float = 0.0,
    ) -> "Costs":
        """The same on every rank; passes are those of a whole rank, shared among its chunks."""
        passes = np.zeros((len(CODES), given.stages))
        whole = {
            Kind.F: forward,
            Kind.I: backward_input,
            Kind.W: backward_weight,
            Kind.B: backward_input + backward_weight,
        }
        for kind, seconds in whole.items():
            passes[CODES[kind]] = seconds / max(1, given.chunks)
        return cls(passes, np.full((len(given.ranks),) * 2, transfer))


@dataclass(frozen=True)
class Timed:
    """A plan's columns with `start` and `stop` of each action, seconds."""

    columns: Columns
    start: np.ndarray
    stop: np.ndarray

    @property
    def end(self) -> float:
        return float(self.stop.max(initial=0.0))


def timed(given: Plan, costs: Costs, slower: np.ndarray | None = None) -> Timed:
    """When everything happens. `slower` [actions]: how many times as long each action takes.

    Raises BadInput saying who waits for whom where it is stuck.
    """
    table = columns(given)
    took = costs.passes[table.kind, table.stage] if costs.own is None else costs.own.copy()
    if slower is not None:
        took *= slower
    ends = np.isin(table.kind, [CODES[k] for k in TRANSFERS])
    # A transfer is one between two ranks, and no pass of the stage.
    other = np.where(table.partner >= 0, table.partner, 0)
    source, target = table.rank, table.rank[other] if len(table.rank) else table.rank
    took[ends] = costs.transfers[source, target][ends]
    waits = _first_alone(table) if costs.first_alone else table.waits
    source = table.rank[np.where(waits == NOBODY, 0, waits)]
    delay = np.where(source == table.rank, 0.0, costs.transfers[source, table.rank])
    after = np.zeros(len(took))
    if costs.after is not None:
        after = costs.after[table.kind, table.stage]
    start, stop = np.zeros(len(took)), np.zeros(len(took))
    done = walk(
        table.first, table.rank, waits, delay, table.partner, ends, took, after, start, stop
    )  # fmt: skip
    if int(done.sum()) < len(took):
        raise BadInput(stuck(given, table, done))
    if costs.together:
        _together(table, start, stop)
    return Timed(table, start, stop)


TRANSFERS = (Kind.SEND_F, Kind.RECV_F, Kind.SEND_B, Kind.RECV_B)


def _first_alone(table: Columns) -> np.ndarray:
    """What each action waits for where of a group going round, which is one microbatch for each
    rank, all but the first begin without."""
    ranks = len(table.first) - 1
    source = table.rank[np.where(table.waits == NOBODY, 0, table.waits)]
    forward = (table.kind == F) & (table.rank == 0) & (table.stage % ranks == 0)
    backward = (table.kind == B) | (table.kind == I)
    backward &= (table.rank == ranks - 1) & (table.stage % ranks == ranks - 1)
    others = (table.microbatch % ranks != 0) & (source != table.rank)
    return np.where((forward | backward) & others, NOBODY, table.waits)


def _together(table: Columns, start: np.ndarray, stop: np.ndarray) -> None:
    """Move each rank's optimiser to where the last rank is done with everything else."""
    steps = table.kind == CODES[Kind.STEP]
    if not steps.any() or steps.all():
        return
    ready = stop[~steps].max()
    for rank in np.unique(table.rank[steps]):
        mine = steps & (table.rank == rank)
        late = ready - start[mine].min()
        start[mine] += late
        stop[mine] += late
