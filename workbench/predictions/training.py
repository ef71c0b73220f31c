"""A described training run's prediction: step time, tokens a second, share of peak and memory."""

from dataclasses import fields

from engine.training.step_time.described import TrainingRun
from engine.training.step_time.interval import Interval, interval, lifted
from engine.training.step_time.step import Prepared, Step
from workbench.parallelism_split import schedule_command
from workbench.predictions.bill import bill
from workbench.predictions.prediction import Estimate, Prediction

KIND = "training"
TRILLION, DAY = 1e12, 86_400.0
MEMORY_SPREAD = 0.1  # of what is counted; allocators and communication buffers are not


def predict(run: TrainingRun) -> Prediction:
    """What a step of the run will take. Raises BadInput where it does not fit together."""
    prepared = Prepared(run)
    step, wide = prepared.whole(), interval(prepared)
    seconds = seconds_of(step, wide)
    held = step.memory.total
    figures = {
        "step": seconds,
        "tokens per second": seconds.per(step.tokens, "/s"),
        "tokens per second and device": seconds.per(step.tokens / run.cluster.devices, "/s"),
        "of peak": seconds.per(step.of_peak * step.seconds, "%"),
        "days for a trillion tokens": seconds.times(TRILLION / step.tokens / DAY, "days"),
        "memory": Estimate(held, held * (1 - MEMORY_SPREAD), held * (1 + MEMORY_SPREAD), "B"),
        **bill(seconds, step.tokens, "token", run.cluster.devices, run.cluster.sheet(),
               run.cluster.price),
    }  # fmt: skip
    memory = {each.name: getattr(step.memory, each.name) for each in fields(step.memory)}
    return Prediction(
        KIND, said(run), figures, step.parts, {"collectives": step.hidden}, lifted(prepared),
        memory, notes(step, wide), schedule=schedule_command(run),
    )  # fmt: skip


def seconds_of(step: Step, wide: Interval) -> Estimate:
    return Estimate(step.seconds, wide.low, wide.high, "s")


def said(run: TrainingRun) -> str:
    """The run in a line."""
    split, recipe = run.split, run.recipe
    sizes = {
        "tensor": split.tensor,
        "pipeline": split.pipeline,
        "context": split.context,
        "expert": split.expert,
        "data": run.replicas,
    }
    parts = ", ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
    return (
        f"{run.model or 'a described architecture'} on {run.cluster.devices:,} "
        f"{run.cluster.sheet().name}: {parts or 'one device'}; sequences of {recipe.sequence:,}, "
        f"microbatches of {recipe.microbatch}, batch {run.batch:,}, {recipe.dtype}"
    )


def notes(step: Step, wide: Interval) -> tuple[str, ...]:
    """What a reader must know of it."""
    found = []
    sheet = step.run.cluster.sheet()
    if not wide.own:
        found.append(f"no training run on {sheet.name} was fitted: the interval is wider for that")
    if step.memory.total > sheet.capacity:
        found.append(
            f"it does not fit: {step.memory.total / 2**30:.0f} GiB of "
            f"{sheet.capacity / 2**30:.0f} GiB a device"
        )
    return tuple(found)
