"""Made-up schedules: a pipeline in the 1F1B order, and whatever spans a test names."""

from engine.core.events import AnyEvent, Closed, Level, Opened, Span
from engine.core.log import Log
from engine.core.tags import tag


def log(*events: AnyEvent, clock: str = "wall", **facts) -> Log:
    """These events in order of time under a header with these facts."""
    ordered = sorted(events, key=lambda event: event.time)
    end = ordered[-1].time if ordered else 0.0
    return Log([Opened(0.0, {}, facts=facts, clock=clock), *ordered, Closed(end, "finished")])


def span(lane: str, name: str, start: float, stop: float, **facts) -> Span:
    return Span(stop, lane, name, start, tag=tag(**facts))


def pipeline(stages: int, batches: int, *, memory: bool = False, **facts) -> Log:
    """One forward and one backward pass of a second each for every microbatch, 1F1B."""
    done: dict[tuple[str, int, int], float] = {}
    free = [0.0] * stages
    plans = [_plan(stages, batches, stage) for stage in range(stages)]
    events: list[AnyEvent] = []
    while any(plans):
        for stage, plan in enumerate(plans):
            while plan and (ready := _ready(plan[0], stage, stages, done)) is not None:
                name, batch = plan.pop(0)
                start = max(free[stage], ready)
                free[stage] = done[name, stage, batch] = start + 1.0
                events.append(span(f"rank {stage}", name, start, start + 1.0, mb=batch))
                if memory:
                    held = sum(e.name == "F" for e in events if e.lane == f"rank {stage}")
                    level = Level(start + 1.0, f"rank {stage}", "memory/activations", held * 2.0)
                    events.append(level)
    return log(*events, **facts)


def _plan(stages: int, batches: int, stage: int) -> list[tuple[str, int]]:
    warm = min(stages - stage, batches)
    plan = [("F", i) for i in range(warm)]
    for i in range(batches):
        plan.append(("B", i))
        if warm + i < batches:
            plan.append(("F", warm + i))
    return plan


def _ready(
    step: tuple[str, int], stage: int, stages: int, done: dict[tuple[str, int, int], float]
) -> float | None:
    name, batch = step
    if name == "F":
        return 0.0 if stage == 0 else done.get(("F", stage - 1, batch))
    last = stage == stages - 1
    return done.get(("F", stage, batch) if last else ("B", stage + 1, batch))
