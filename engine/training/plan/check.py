"""Plan checker: what is wrong with a pipeline plan, in words; nothing where it can be run.

Every pass once, on one rank, forward before backward and weights after input; every transfer with
both its ends in their places; nobody stuck, sends blocking until received; the memory limit kept.
"""

from collections.abc import Iterator

import numpy as np

from engine.core.errors import BadInput
from engine.training.plan.actions import NONE, Kind, Plan
from engine.training.plan.columns import CODES, Columns, columns
from engine.training.plan.memory import held
from engine.training.plan.times import Costs, timed
from engine.training.plan.transfers import transfer_faults

SHOWN = 12  # faults of one sort told apart


def check(
    given: Plan, *, limit: float | None = None, kept: float = 1.0, timed_next: bool = False
) -> list[str]:
    """What is wrong with `given`. `limit`: activations a rank may hold; `kept` as in memory.

    `timed_next`: who gets stuck is left to the clock that walks the plan right after.
    """
    if not len(given) or not given.microbatches:
        return ["the plan has no passes: write a line of actions for each rank, such as 0F0 0B0"]
    table = columns(given)
    faults = [*_homes(given), *_counts(given, table)]
    if faults:
        return faults  # what follows takes every pass to stand once
    faults = [*_order(given, table), *_ends(given, table), *transfer_faults(given, table)]
    if not faults and not timed_next:
        try:
            timed(given, Costs.even(given))
        except BadInput as fault:
            faults.append(str(fault))
    if limit is not None:
        faults += memory_faults(given, table, limit, kept)
    return faults


def checked(given: Plan, *, timed_next: bool = False) -> Plan:
    """`given` itself, or BadInput with the first of what is wrong and how much more there is."""
    faults = check(given, timed_next=timed_next)
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise BadInput(f"{faults[0]}{more}")
    return given


def _homes(given: Plan) -> Iterator[str]:
    homes: dict[int, list[int]] = {}
    for rank, actions in enumerate(given.ranks):
        for stage in sorted({each.stage for each in actions}):
            homes.setdefault(stage, []).append(rank)
    for stage in range(given.stages):
        ranks = homes.get(stage, [])
        if len(ranks) > 1:
            yield f"stage {stage} is on ranks {_listed(ranks)}; a stage belongs to one rank"
        elif not ranks:
            yield f"stage {stage} is on no rank; {given.stages} stages are numbered from 0"


def _counts(given: Plan, table: Columns) -> Iterator[str]:
    """Each forward once; each backward once, whole or as I and W."""
    counts = np.zeros((len(CODES), given.stages, given.microbatches), np.int64)
    real = table.microbatch != NONE
    np.add.at(counts, (table.kind[real], table.stage[real], table.microbatch[real]), 1)
    whole, split, weights = (counts[CODES[k]] for k in (Kind.B, Kind.I, Kind.W))
    sorts = (
        ("forward", "F", counts[CODES[Kind.F]], 1),
        ("backward", "B or I", whole + split, 1),
        ("backward for the weights", "W", whole + weights, 1),
    )
    there_S = np.isin(np.arange(given.stages), list(given.rank_of))  # of others `_homes` tells
    for name, word, found, wanted in sorts:
        for stage, microbatch in np.argwhere((found != wanted) & there_S[:, None])[:SHOWN]:
            number = found[stage, microbatch]
            said = "is missing" if number == 0 else f"stands {number} times"
            yield (
                f"the {name} ({word}) of microbatch {microbatch} on stage {stage} {said} "
                f"on rank {given.rank_of[int(stage)]}"
            )


def _order(given: Plan, table: Columns) -> Iterator[str]:
    """F before B or I of the same stage and microbatch, I before W."""
    place = np.full((len(CODES), given.stages, given.microbatches), -1, np.int64)
    real = table.microbatch != NONE
    at = (table.kind[real], table.stage[real], table.microbatch[real])
    place[at] = np.flatnonzero(real)
    pairs = ((Kind.F, Kind.B), (Kind.F, Kind.I), (Kind.I, Kind.W))
    for early, late in pairs:
        first, second = place[CODES[early]], place[CODES[late]]
        wrong = (second >= 0) & (first >= 0) & (second < first)
        for stage, microbatch in np.argwhere(wrong)[:SHOWN]:
            rank = given.rank_of[int(stage)]
            own = int(table.first[rank])
            yield (
                f"{stage}{late}{microbatch} comes before {stage}{early}{microbatch} on rank {rank} "
                f"(actions {second[stage, microbatch] - own + 1} and "
                f"{first[stage, microbatch] - own + 1})"
            )


def _ends(given: Plan, table: Columns) -> Iterator[str]:
    """After a stage's gradients are reduced come no more of them; after its step comes nothing."""
    if not np.isin(table.kind, [CODES[Kind.STEP], CODES[Kind.REDUCE_GRAD]]).any():
        return
    for rank, actions in enumerate(given.ranks):
        over: dict[int, Kind] = {}
        for each in actions:
            last = over.get(each.stage)
            if last is Kind.STEP or (last is Kind.REDUCE_GRAD and each.kind in (Kind.B, Kind.W)):
                yield f"{each} comes after {each.stage}{last} on rank {rank}"
                break
            if each.kind in (Kind.STEP, Kind.REDUCE_GRAD):
                over[each.stage] = each.kind


def memory_faults(given: Plan, table: Columns, limit: float, kept: float) -> Iterator[str]:
    """A sentence for each rank that holds more than `limit` activations."""
    level = held(table, max(1, given.chunks), kept)[:, 0]
    for rank, actions in enumerate(given.ranks):
        mine = level[table.first[rank] : table.first[rank + 1]]
        over = np.flatnonzero(mine > limit + 1e-9)
        if len(over):
            yield (
                f"rank {rank} holds {mine[over[0]]:.4g} activations from {actions[over[0]]} on "
                f"(its action {over[0] + 1}) and {mine.max():.4g} at most; {limit:.4g} are allowed"
            )


def _listed(ranks: list[int]) -> str:
    more = len(ranks) - SHOWN
    last = f"{more} more" if more > 0 else str(ranks.pop())
    return ", ".join(map(str, ranks[:SHOWN])) + f" and {last}"
