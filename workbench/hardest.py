"""A claim judged on several workloads: by the hardest, where least of its effect is left."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from workbench.claim import Outcome

C = TypeVar("C")


def hardest(works: Mapping[str, C], judge: Callable[[C], Outcome], better: str = "more") -> Outcome:
    """The outcome of `judge` on the workload where the figure is least (most, where less is
    `better`) of those where it does not hold, if there are any; with what was seen of each by
    name."""
    found = {name: judge(config) for name, config in works.items()}
    sign = 1.0 if better == "more" else -1.0
    least = min(
        found.values(),
        key=lambda one: (one.holds, sign * one.figure.value if one.figure else -1e300),
    )
    told = "; ".join(f"{name}: {one.measured}" for name, one in found.items())
    return replace(least, measured=told)
