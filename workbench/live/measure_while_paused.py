"""Re-measures this machine's roofline while the live engine is paused."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

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


def measure_roofs(executor: Executor, again: bool = True) -> str:
    """Measure now, and let the executor's facts (and so the next run's header) carry the roofs.

    `again`: off takes those that somebody else has measured since, and measures nothing. Returns
    what to know before trusting them, "" for nothing.
    """
    from engine.inference.executors.tensors.real_executor import limits  # brings torch

    found = measure(refresh=True) if again else known()
    executor.facts = replace(executor.facts, **limits(executor.facts.device))
    return f"roofs {found.caution}" if found and found.caution else ""
