"""The driver of a pipeline: a plan on the virtual clock, on real ranks, or on both, as events.

Takes a `PipelineConfig`; emits a span for each action in its rank's lane, a move for each transfer,
each rank's memory by kind, and the bubble in words. Times come out as arrays first, then as events.
Where ranks did the plan the clock is fed with what they took, and stands beside them as modelled.
"""

from typing import Any

from engine.cluster import contended, pipeline_contended, training_steps
from engine.cluster.pipeline_events import (
    fixed,
    in_time,
    in_words,
    levels,
    moves,
    passes_of,
    spans,
)
from engine.cluster.training_steps import lanes, run_steps, words
from engine.core.events import Level, Mark, Span
from engine.core.machine import describe
from engine.core.run import Live
from engine.training.pipeline.config import PipelineConfig, Worked, worked
from engine.training.pipeline.executions.modelled import Modelled
from engine.training.plan.bubble import of_spans
from engine.training.plan.check import checked, memory_faults
from engine.training.plan.times import Timed, timed
from engine.training.plan.transfers import lower

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
        events = in_time([*events, *spans(made, times, "modelled")])
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
    execution = config.execution
    if isinstance(execution, Modelled) and execution.faults.any:
        _many(config, made, execution, live)
        return
    if config.cluster.name:
        _contend(config, made, live)
        return
    live.open(config, clock, describe(), **facts(config, made))
    for warning in _over(config, made, times):
        live.emit(Mark(0.0, "plan", "memory limit", warning))
    for event in in_time([*fixed(made), *spans(made, times), *levels(made, times),
                          *moves(made, times)]):  # fmt: skip
        live.emit(event)
    clock.wait_until(times.end)
    live.emit(Mark(times.end, "plan", "bubble", in_words(passes_of(times))))


def _many(config: PipelineConfig, made: Worked, execution: Modelled, live: Live) -> None:
    """Step after step, with what goes wrong."""
    live.report("steps", 0, 0)
    steps, history, every = run_steps(config, made, execution.faults, live.seed)
    header = {**facts(config, made), "lanes": lanes(steps)}
    live.open(config, execution.clock(), describe(), **header)
    for event in in_time([*training_steps.events(steps, history), *words(steps, history, every)]):
        live.emit(event)


def _contend(config: PipelineConfig, made: Worked, live: Live) -> None:
    """On the virtual clock of a cluster whose links all transfers share."""
    live.report("links", 0, 0)
    done = contended.play(config, made)
    header = {**facts(config, made), **pipeline_contended.header(done)}
    live.open(config, config.execution.clock(), describe(), **header)
    for warning in _over(config, made, done.times[0]):
        live.emit(Mark(0.0, "plan", "memory limit", warning))
    told = pipeline_contended.words(done)
    for event in in_time([*told, *pipeline_contended.events(made, done)]):
        live.emit(event)
    words = in_words(pipeline_contended.bubble_of(done))
    live.emit(Mark(done.end, "plan", "bubble", words))


def facts(config: PipelineConfig, made: Worked) -> dict[str, Any]:
    """What views need: lanes in order, the limit in bytes, the plan as text where it is short."""
    share, found = made.share, dict[str, Any]()
    if config.memory_limit and not config.execution.is_real:
        fixed = share.weights + share.gradients + share.optimiser
        found["memory_limit"] = fixed + config.memory_limit * share.activations
    if len(made.plan) <= WRITTEN:
        found["plan"] = str(made.plan)
    lanes = config.execution.lanes(len(made.plan.ranks))
    return {"lanes": lanes, "chunks": made.plan.chunks, **found}


def _over(config: PipelineConfig, made: Worked, times: Timed) -> list[str]:
    """Where the plan holds more than the limit: it is drawn all the same, over its line."""
    if not config.memory_limit:
        return []
    return [*memory_faults(made.plan, times.columns, config.memory_limit, made.share.kept)]
