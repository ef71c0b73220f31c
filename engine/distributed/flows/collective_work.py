"""A collective's plan on the clock that flows share, and which algorithm is the fastest there.

A member begins a round once it has sent and received all of its last one, and a message once both
its ends have begun the round.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.core.config import kinds
from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.distributed.collective import OPERATIONS, Collective, Pattern, Transfers
from engine.distributed.flows.work import Work, together
from engine.hardware.topology import Topology

MOST = 20_000
FEW = 4  # tasks that others wait for one by one; of more they wait for their common end


@dataclass(frozen=True)
class Carried:
    """`done`: by member, the task after which it has its result. `messages`: number of each message
    and who sends it to whom, as ranks."""

    done: list[int]
    messages: list[tuple[int, int, int]]


def carry(
    work: Work, plan: Transfers, members: Sequence[int], size: float, ready: Sequence[int]
) -> Carried:
    """Add `plan` to `work`. `members`: their ranks; `size`: bytes of the tensor; `ready`: by
    member, the task after which its tensor is there."""
    last = [[task] for task in ready]
    messages: list[tuple[int, int, int]] = []
    piece = size / plan.pieces
    for round in plan.rounds:
        own: defaultdict[int, list[int]] = defaultdict(list)
        for each in round:
            source, target = members[each.source], members[each.target]
            after = {*last[each.source], *last[each.target]}
            task = work.send(source, target, (each.last - each.first) * piece, after)
            own[each.source].append(task)
            own[each.target].append(task)
            messages.append((task, source, target))
        for member, tasks in own.items():
            last[member] = tasks if len(tasks) <= FEW else [work.join(tasks)]
    return Carried([work.join(tasks) for tasks in last], messages)


def alone(topology: Topology, plan: Transfers, members: Sequence[int], size: float) -> float:
    """Seconds of a collective with the network to itself."""
    work = Work(topology)
    begun = work.compute(0.0)
    carry(work, plan, members, size, [begun] * len(members))
    return work.played().end


def in_step(
    topology: Topology, patterns: Sequence[Pattern], groups: Sequence[Sequence[int]], size: float
) -> float:
    """Seconds of a collective that all `groups` do at once, round by round: every distinct round
    is played once with everybody's messages, so thousands of ranks are quick. Who lags behind in a
    round holds all up: at least what the plans themselves take."""
    total, ranks = 0.0, np.array([list(members) for members in groups], np.int64)
    for pattern in patterns:
        if pattern.pairs:
            source, target = np.array(pattern.pairs, np.int64).T
            sent = ranks[:, source].reshape(-1), ranks[:, target].reshape(-1)
            total += pattern.times * together(topology, *sent, pattern.share * size)
    return total


def algorithms(operation: str) -> dict[str, Collective]:
    """Every algorithm of an operation by its kind. Raises BadInput for an operation unheard of."""
    if operation not in OPERATIONS:
        raise BadInput(f"operation {operation!r}: unknown; {suggest(operation, OPERATIONS)}")
    found = (algorithm(kind) for kind in kinds(Collective))
    return {each.kind: each for each in found if each.operation == operation}


def algorithm(kind: str) -> Collective:
    """The algorithm of that kind. Raises BadInput listing those there are."""
    known = kinds(Collective)
    if kind not in known:
        raise BadInput(f"collective {kind!r}: no such algorithm; {suggest(kind, known)}")
    found = known[kind].model_validate({})
    assert isinstance(found, Collective)
    return found


def times(
    topology: Topology, operation: str, groups: Sequence[Sequence[int]], node: int, size: float
) -> dict[str, float]:
    """Seconds of every algorithm that fits, quickest first, all `groups` at once; of those with
    more than `MOST` messages in a round, which share ports by the hundred, none is tried."""
    ranks, found = len(groups[0]), dict[str, float]()
    for kind, each in algorithms(operation).items():
        if not each.fits(ranks, node):
            continue
        patterns = each.patterns(ranks, node)
        most = max((len(pattern.pairs) for pattern in patterns), default=0)
        if most * len(groups) <= MOST:
            found[kind] = in_step(topology, patterns, groups, size)
    return dict(sorted(found.items(), key=lambda item: item[1]))
