"""Re-measures this machine's roofline while the live engine is paused."""

from dataclasses import replace

from engine.hardware.measure import measure
from engine.inference.executors.executor import Executor


def measure_roofs(executor: Executor) -> None:
    """Measure now, and let the executor's facts (and so the next run's header) carry the roofs."""
    from engine.inference.executors.tensors.real_executor import limits  # brings torch

    measure(refresh=True)
    executor.facts = replace(executor.facts, **limits(executor.facts.device))
