"""Re-measures this machine's roofline while the live engine is paused."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from engine.core.run import Run
from engine.hardware.measure import known, measure
from engine.inference.executors.executor import Executor

SETTLE = 0.1  # seconds for the step at hand to end


@contextmanager
def still(run: Run | None) -> Iterator[None]:
    """An engine's run makes no step meanwhile; one that a person paused stays paused."""
    if run is None or run.state != "running":
        yield
        return
    run.pause()
    time.sleep(SETTLE)
    try:
        yield
    finally:
        run.resume()


def measure_roofs(executor: Executor, again: bool = True) -> None:
    """Measure now, and let the executor's facts (and so the next run's header) carry the roofs.

    `again`: off takes those that somebody else has measured since, and measures nothing.
    """
    executor.facts = executor.facts.under(measure(refresh=True) if again else known())
