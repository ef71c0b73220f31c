"""Transfers of a plan: whether those written out stand in their places, and writing them out."""

from collections.abc import Iterator

import numpy as np

from engine.core.errors import BadInput
from engine.training.plan.actions import RECEIVES, SENDS, Action, Kind, Plan, plan
from engine.training.plan.columns import NOBODY, Columns

MADE_BY = {Kind.SEND_F: (Kind.F,), Kind.SEND_B: (Kind.B, Kind.I)}
USED_BY = {Kind.RECV_F: (Kind.F,), Kind.RECV_B: (Kind.B, Kind.I)}
SHOWN = 12


def transfer_faults(given: Plan, table: Columns) -> list[str]:
    """What is wrong with the transfers of a lowered plan; nothing of one without any."""
    if not given.lowered:
        return []
    faults: list[str] = []
    for rank, actions in enumerate(given.ranks):
        place = {each: number for number, each in enumerate(actions)}
        for number, each in enumerate(actions):
            if each.kind in SENDS or each.kind in RECEIVES:
                first = int(table.first[rank])
                faults += _one(given, table, rank, place, first + number, each)
            elif each.kind in (Kind.F, Kind.B, Kind.I):
                faults += _fed(given, rank, place, each)
            if len(faults) > SHOWN:
                return faults
    return faults


def _one(
    given: Plan, table: Columns, rank: int, place: dict[Action, int], number: int, each: Action
) -> Iterator[str]:
    """A send after the pass that makes what it sends, a receive before the one that uses it."""
    partner = int(table.partner[number])
    at = number - int(table.first[rank])
    if place[each] != at:
        yield f"{each} stands twice on rank {rank}"
        return
    if partner == NOBODY:
        other = SENDS.get(each.kind) or RECEIVES[each.kind]
        yield f"{each} of rank {rank} has no {other.value} on the stage beside it"
        return
    if int(table.rank[partner]) == rank:
        yield f"{each} of rank {rank} goes to the rank itself; leave it out"
    passes = [Action(each.stage, k, each.microbatch) for k in (MADE_BY | USED_BY)[each.kind]]
    found = next((p for p in passes if p in place), None)
    if found is None:
        yield f"{each} of rank {rank} belongs to no pass of its stage"
    elif each.kind in SENDS and at < place[found]:
        yield f"{each} comes before {found}, which makes what it sends, on rank {rank}"
    elif each.kind in RECEIVES and at > place[found]:
        yield f"{each} comes after {found}, which uses what it receives, on rank {rank}"


def _fed(given: Plan, rank: int, place: dict[Action, int], each: Action) -> Iterator[str]:
    """A pass that needs another rank's tensor has its receive."""
    forward = each.kind is Kind.F
    source = given.rank_of.get(each.stage + (-1 if forward else 1))
    needed = Action(each.stage, Kind.RECV_F if forward else Kind.RECV_B, each.microbatch)
    if source is not None and source != rank and needed not in place:
        yield f"{each} of rank {rank} needs {needed}, which is missing: rank {source} makes it"


def lower(given: Plan, start: np.ndarray, stop: np.ndarray) -> Plan:
    """`given` with its transfers written out, from when its passes start and stop.

    A transfer stands on both ranks at the moment its tensor is made, so that one order of all
    transfers agrees with every rank's own and blocking sends cannot deadlock. Raises BadInput for a
    plan that has transfers already.
    """
    if given.lowered:
        raise BadInput("plan: its transfers are written out already")
    flat = [(rank, each) for rank, actions in enumerate(given.ranks) for each in actions]
    moments: list[tuple[float, int, int, tuple[tuple[int, Action], ...]]] = []
    for number, (rank, each) in enumerate(flat):
        moments.append((float(start[number]), 1, number, ((rank, each),)))
        sent = _sent(given, rank, each)
        if sent:
            moments.append((float(stop[number]), 0, number, sent))
    rows: list[list[Action]] = [[] for _ in given.ranks]
    for *_, placed in sorted(moments):
        for rank, each in placed:
            rows[rank].append(each)
    return plan(rows)


def _sent(given: Plan, rank: int, each: Action) -> tuple[tuple[int, Action], ...]:
    """The send and the receive that a pass gives rise to, with their ranks; none within a rank."""
    if each.kind is Kind.F:
        send, step = Kind.SEND_F, 1
    elif each.kind in (Kind.B, Kind.I):
        send, step = Kind.SEND_B, -1
    else:
        return ()
    stage = each.stage + step
    target = given.rank_of.get(stage)
    if target is None or target == rank:
        return ()
    receive = Action(stage, SENDS[send], each.microbatch)
    return (rank, Action(each.stage, send, each.microbatch)), (target, receive)
