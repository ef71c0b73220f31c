"""Measures this machine's roofs while the live engine stands still."""

from dataclasses import replace

from engine.hardware.measure import measure
from engine.inference.executor import Executor


def measure_roofs(executor: Executor) -> None:
    """Measure now, and let the executor's facts (and so the next run's header) carry the roofs."""
    from engine.inference.executor_real import limits  # brings torch

    measure(refresh=True)
    executor.facts = replace(executor.facts, **limits(executor.facts.device))
