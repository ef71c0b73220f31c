"""Events of a timed pipeline plan: spans, memory levels, transfers, and the bubble in words.

`first`: the number of the first rank's lane, for plans that are played beside one another.
"""

import numpy as np

from engine.core.events import AnyEvent, Level, Move, Span
from engine.training.pipeline.job import Job
from engine.training.plan.actions import KINDS, NONE, Kind
from engine.training.plan.bubble import Bubble, bubble
from engine.training.plan.columns import CODES, NOBODY, B, F, I, W
from engine.training.plan.memory import held
from engine.training.plan.times import Timed
from engine.training.stages.program import NAMES


def lane(rank: int) -> str:
    return f"rank {rank}"


def in_time(events: list[AnyEvent]) -> list[AnyEvent]:
    """In the order of their times; those of one moment as they stand."""
    order = np.argsort(np.array([event.time for event in events]), kind="stable")
    return [events[place] for place in order.tolist()]


def passes_of(times: Timed) -> Bubble:
    """The bubble of a plan's passes."""
    passes = np.isin(times.columns.kind, [F, B, I, W])
    return bubble(times.columns.rank[passes], times.start[passes], times.stop[passes])


def in_words(found: Bubble) -> str:
    """A bubble with every denominator named."""
    return (
        f"bubble (no pass): {found.of_total:.2%} of the total, {found.of_ideal:.2%} of the ideal "
        f"time, {found.of_longest_rank:.2%} of the longest rank's"
    )


def fixed(job: Job, first: int = 0) -> list[AnyEvent]:
    """What ranks hold throughout."""
    share = job.share
    kinds = {
        "weights": share.weights,
        "gradients": share.gradients,
        "optimiser": share.optimiser,
    }
    ranks = range(len(job.plan.ranks))
    return [
        Level(0.0, lane(first + rank), f"memory/{name}", size)
        for rank in ranks
        for name, size in kinds.items()
        if size > 0
    ]


def spans(job: Job, times: Timed, grade: str = "", first: int = 0) -> list[AnyEvent]:
    table, share, chunks = times.columns, job.share, job.plan.chunks
    flops = np.zeros(len(CODES))
    flops[F] = share.forward_flops / chunks
    flops[B] = share.backward_flops / chunks
    flops[I] = flops[W] = share.backward_flops / chunks / 2
    names = [NAMES.get(kind, kind.value) for kind in KINDS.values()]
    lanes = [lane(first + rank) for rank in range(len(job.plan.ranks))]
    columns = (table.rank, table.kind, table.microbatch, table.stage, times.start, times.stop)
    graded = f" grade={grade}" if grade else ""
    works, rows = flops.tolist(), zip(*(column.tolist() for column in columns), strict=True)
    return [
        Span(
            stop, lanes[rank], names[kind], start, works[kind],
            tag=(f"mb={mb} stage={stage}" if mb != NONE else f"stage={stage}") + graded,
        )
        for rank, kind, mb, stage, start, stop in rows
    ]  # fmt: skip


def levels(job: Job, times: Timed, first: int = 0) -> list[AnyEvent]:
    """Activations of each rank wherever they change; of several changes at a moment the last."""
    table, size = times.columns, job.share.activations
    if size <= 0:
        return []
    level = held(table, job.plan.chunks, job.share.kept).reshape(-1)
    rank = np.repeat(table.rank, 2)
    when = np.stack([times.start, times.stop], axis=1).reshape(-1)
    last = np.append((rank[1:] != rank[:-1]) | (when[1:] > when[:-1]), True)
    rank, when, level = rank[last], when[last], level[last]
    same = np.append(False, (rank[1:] == rank[:-1]) & (np.abs(np.diff(level)) < 1e-12))
    columns = (rank[~same], when[~same], level[~same] * size)
    lanes = [lane(first + rank) for rank in range(len(job.plan.ranks))]
    return [
        Level(time, lanes[of], "memory/activations", value)
        for of, time, value in zip(*(column.tolist() for column in columns), strict=True)
    ]


def moves(job: Job, times: Timed) -> list[AnyEvent]:
    """Tensors from rank to rank: beside the passes, or where sends stand in the plan."""
    table, size, between = times.columns, job.share.boundary, job.costs.transfers
    sends = np.isin(table.kind, [CODES[Kind.SEND_F], CODES[Kind.SEND_B]])
    target = np.flatnonzero(sends if sends.any() else table.waits != NOBODY)
    source = target if sends.any() else table.waits[target]
    to = table.rank[table.partner[target] if sends.any() else target]
    of = table.rank[source]
    begun = times.start[target] if sends.any() else times.stop[source]
    ended = times.stop[target] if sends.any() else begun + between[of, to]
    across = of != to
    columns = (of, to, table.microbatch[target], begun, ended)
    rows = zip(*(column[across].tolist() for column in columns), strict=True)
    lanes = [lane(rank) for rank in range(len(job.plan.ranks))]
    return [
        Move(stop, lanes[a], lanes[b], size, start, tag=f"mb={mb}")
        for a, b, mb, start, stop in rows
    ]
