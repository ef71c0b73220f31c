"""The driver of a pipeline: a plan on the virtual clock, on real ranks, or on both, as events.

Takes a `PipelineConfig`; emits a span for each action in its rank's lane, a move for each transfer,
each rank's memory by kind, and the bubble in words. Times come out as arrays first, then as events.
Where ranks did the plan the clock is fed with what they took, and stands beside them as modelled.
"""

from dataclasses import replace
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
from engine.core.run import Live
from engine.training.pipeline.config import PipelineConfig
from engine.training.pipeline.executors.modelled import Modelled
from engine.training.pipeline.job import Job
from engine.training.plan.bubble import of_spans
from engine.training.plan.check import checked, memory_faults
from engine.training.plan.times import Timed, timed
from engine.training.plan.transfers import lower

ERROR = "error"  # a level: of the gradients against one process's, relative
WRITTEN = 6_000  # actions of a plan that the header carries as text


def run(config: PipelineConfig, live: Live) -> None:
    """One training step. Raises BadInput where the plan cannot be run, RankLost among it."""
    job = config.job()
    checked(job.plan, timed_next=True)
    if config.executor.real:
        _carry_out(config, job, live)
    else:
        _model(config, job, live)


def _carry_out(config: PipelineConfig, job: Job, live: Live) -> None:
    """On real ranks, and where it is asked for on the clock with the times they took."""
    live.open(config, config.executor.clock(), **facts(config, job))
    live.report("starting the ranks", 0, 0)
    done = config.executor.carry_out(job, live)
    assert done is not None
    events, told = done.events, {"measured": in_words(of_spans(done.events))}
    if config.executor.modelled:
        times = timed(job.plan, done.costs)
        # From the moment at which the first rank began.
        begun = min(event.start for event in events if isinstance(event, Span))
        times = Timed(times.columns, times.start + begun, times.stop + begun)
        events = in_time([*events, *spans(job, times, "modelled")])
        told["modelled"] = in_words(passes_of(times))
    end = max(event.time for event in events)
    for event in events:
        live.emit(event)
    for how, text in told.items():
        live.emit(Mark(end, "plan", f"{how} bubble", f"{how}: {text}"))
    if done.error is not None:
        live.emit(Level(end, "gradients", ERROR, done.error))


def _model(config: PipelineConfig, job: Job, live: Live) -> None:
    """On the virtual clock with the config's times."""
    clock = config.executor.clock()
    times = timed(job.plan, job.costs)
    if config.wires.blocking and not job.plan.lowered:
        written = lower(job.plan, times.start, times.stop)
        job = replace(job, plan=written)
        times = timed(written, job.costs)
    executor = config.executor
    if isinstance(executor, Modelled) and executor.faults.any:
        _many(config, job, executor, live)
        return
    if config.cluster.name:
        _contend(config, job, live)
        return
    live.open(config, clock, **facts(config, job))
    for warning in _over(config, job, times):
        live.emit(Mark(0.0, "plan", "memory limit", warning))
    for event in in_time([*fixed(job), *spans(job, times), *levels(job, times),
                          *moves(job, times)]):  # fmt: skip
        live.emit(event)
    clock.wait_until(times.end)
    live.emit(Mark(times.end, "plan", "bubble", in_words(passes_of(times))))


def _many(config: PipelineConfig, job: Job, executor: Modelled, live: Live) -> None:
    """Step after step, with what goes wrong."""
    live.report("steps", 0, 0)
    steps, history, every = run_steps(config, job, executor.faults, live.seed)
    header = {**facts(config, job), "lanes": lanes(steps)}
    live.open(config, executor.clock(), **header)
    for event in in_time([*training_steps.events(steps, history), *words(steps, history, every)]):
        live.emit(event)


def _contend(config: PipelineConfig, job: Job, live: Live) -> None:
    """On the virtual clock of a cluster whose links all transfers share."""
    live.report("links", 0, 0)
    done = contended.play(config, job)
    header = {**facts(config, job), **pipeline_contended.header(done)}
    live.open(config, config.executor.clock(), **header)
    for warning in _over(config, job, done.times[0]):
        live.emit(Mark(0.0, "plan", "memory limit", warning))
    told = pipeline_contended.words(done)
    for event in in_time([*told, *pipeline_contended.events(job, done)]):
        live.emit(event)
    words = in_words(pipeline_contended.bubble_of(done))
    live.emit(Mark(done.end, "plan", "bubble", words))


def facts(config: PipelineConfig, job: Job) -> dict[str, Any]:
    """What views need: lanes in order, the limit in bytes, the plan as text where it is short."""
    share, found = job.share, dict[str, Any]()
    if config.memory_limit and not config.executor.real:
        fixed = share.weights + share.gradients + share.optimiser
        found["memory_limit"] = fixed + config.memory_limit * share.activations
    elif config.passes.capacity and not config.executor.real:
        found["memory_limit"] = config.passes.capacity  # the device's own
    if len(job.plan) <= WRITTEN:
        found["plan"] = str(job.plan)
    lanes = config.executor.lanes(len(job.plan.ranks))
    return {"lanes": lanes, "chunks": job.plan.chunks, **found}


def _over(config: PipelineConfig, job: Job, times: Timed) -> list[str]:
    """Where the plan holds more than the limit: it is drawn all the same, over its line."""
    if not config.memory_limit:
        return []
    return [*memory_faults(job.plan, times.columns, config.memory_limit, job.share.kept)]
