"""The driver of a pipeline: a plan on the virtual clock, on real ranks, or on both, as events.

Takes a `PipelineConfig`; emits a span for each action in its rank's lane, a move for each transfer,
each rank's memory by kind, and the bubble in words. Times come out as arrays first, then as events.
Where ranks did the plan the clock is fed with what they took, and stands beside them as modelled.
"""

import numpy as np

from engine.core.events import AnyEvent, Level, Mark, Move, Span
from engine.core.machine import describe
from engine.core.run import Live
from engine.training.bubble import Bubble, bubble, of_spans
from engine.training.pipeline import PipelineConfig, Worked, worked
from engine.training.pipeline_program import NAMES
from engine.training.plan import KINDS, NONE, Kind
from engine.training.plan_check import checked, memory_faults
from engine.training.plan_columns import CODES, NOBODY, B, F, I, W
from engine.training.plan_memory import held
from engine.training.plan_times import Timed, timed
from engine.training.plan_transfers import lower

ERROR = "error"  # a level: of the gradients against one process's, relative
WRITTEN = 6_000  # actions of a plan that the header carries as text


def run(config: PipelineConfig, live: Live) -> None:
    """One training step. Raises BadInput where the plan cannot be run, RankLost among it."""
    made = worked(config)
    checked(made.plan, timed_next=True)
    if config.execution.is_real:
        _carry_out(config, made, live)
    else:
        _model(config, made, live)


def _carry_out(config: PipelineConfig, made: Worked, live: Live) -> None:
    """On real ranks, and where it is asked for on the clock with the times they took."""
    live.open(config, config.execution.clock(), describe(), **facts(config, made))
    live.report("ranks", 0, 0)
    done = config.execution.carry_out(config, made, live)
    assert done is not None
    events, told = done.events, {"measured": in_words(of_spans(done.events))}
    if config.execution.is_modelled:
        times = timed(made.plan, done.costs)
        # From the moment at which the first rank began.
        begun = min(event.start for event in events if isinstance(event, Span))
        times = Timed(times.columns, times.start + begun, times.stop + begun)
        events = in_time([*events, *_spans(made, times, "modelled")])
        told["modelled"] = in_words(passes_of(times))
    end = max(event.time for event in events)
    for event in events:
        live.emit(event)
    for how, text in told.items():
        live.emit(Mark(end, "plan", f"{how} bubble", f"{how}: {text}"))
    if done.error is not None:
        live.emit(Level(end, "gradients", ERROR, done.error))


def _model(config: PipelineConfig, made: Worked, live: Live) -> None:
    """On the virtual clock with the config's times."""
    clock = config.execution.clock()
    times = timed(made.plan, made.costs)
    if config.wires.blocking and not made.plan.lowered:
        written = lower(made.plan, times.start, times.stop)
        made = Worked(written, made.costs, made.share)
        times = timed(written, made.costs)
    live.open(config, clock, describe(), **facts(config, made))
    for warning in _over(config, made, times):
        live.emit(Mark(0.0, "plan", "memory limit", warning))
    for event in in_time([*_fixed(made), *_spans(made, times), *_levels(made, times),
                          *_moves(made, times)]):  # fmt: skip
        live.emit(event)
    clock.wait_until(times.end)
    live.emit(Mark(times.end, "plan", "bubble", in_words(passes_of(times))))


def facts(config: PipelineConfig, made: Worked) -> dict[str, object]:
    """What views need: lanes in order, the limit in bytes, the plan as text where it is short."""
    share, found = made.share, dict[str, object]()
    if config.memory_limit and not config.execution.is_real:
        fixed = share.weights + share.gradients + share.optimiser
        found["memory_limit"] = fixed + config.memory_limit * share.activations
    if len(made.plan) <= WRITTEN:
        found["plan"] = str(made.plan)
    lanes = config.execution.lanes(len(made.plan.ranks))
    return {"lanes": lanes, "chunks": made.plan.chunks, **found}


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
        f"bubble {found.of_total:.4f} of the total time, {found.of_ideal:.4f} of the ideal time, "
        f"{found.of_longest_rank:.4f} of the longest rank's own time"
    )


def _over(config: PipelineConfig, made: Worked, times: Timed) -> list[str]:
    """Where the plan holds more than the limit: it is drawn all the same, over its line."""
    if not config.memory_limit:
        return []
    return [*memory_faults(made.plan, times.columns, config.memory_limit, made.share.kept)]


def _fixed(made: Worked) -> list[AnyEvent]:
    """What ranks hold throughout."""
    share = made.share
    kinds = {
        "weights": share.weights,
        "gradients": share.gradients,
        "optimiser": share.optimiser,
    }
    ranks = range(len(made.plan.ranks))
    return [
        Level(0.0, lane(rank), f"memory/{name}", size)
        for rank in ranks
        for name, size in kinds.items()
        if size > 0
    ]


def _spans(made: Worked, times: Timed, grade: str = "") -> list[AnyEvent]:
    table, share, chunks = times.columns, made.share, made.plan.chunks
    flops = np.zeros(len(CODES))
    flops[F] = share.forward_flops / chunks
    flops[B] = share.backward_flops / chunks
    flops[I] = flops[W] = share.backward_flops / chunks / 2
    names = [NAMES.get(kind, kind.value) for kind in KINDS.values()]
    lanes = [lane(rank) for rank in range(len(made.plan.ranks))]
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


def _levels(made: Worked, times: Timed) -> list[AnyEvent]:
    """Activations of each rank wherever they change; of several changes at a moment the last."""
    table, size = times.columns, made.share.activations
    if size <= 0:
        return []
    level = held(table, made.plan.chunks, made.share.kept).reshape(-1)
    rank = np.repeat(table.rank, 2)
    when = np.stack([times.start, times.stop], axis=1).reshape(-1)
    last = np.append((rank[1:] != rank[:-1]) | (when[1:] > when[:-1]), True)
    rank, when, level = rank[last], when[last], level[last]
    same = np.append(False, (rank[1:] == rank[:-1]) & (np.abs(np.diff(level)) < 1e-12))
    columns = (rank[~same], when[~same], level[~same] * size)
    lanes = [lane(rank) for rank in range(len(made.plan.ranks))]
    return [
        Level(time, lanes[of], "memory/activations", value)
        for of, time, value in zip(*(column.tolist() for column in columns), strict=True)
    ]


def _moves(made: Worked, times: Timed) -> list[AnyEvent]:
    """Tensors from rank to rank: beside the passes, or where sends stand in the plan."""
    table, size, between = times.columns, made.share.boundary, made.costs.transfers
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
    lanes = [lane(rank) for rank in range(len(made.plan.ranks))]
    return [
        Move(stop, lanes[a], lanes[b], size, start, tag=f"mb={mb}")
        for a, b, mb, start, stop in rows
    ]
