"""Difference of two traces by kernel: what ran oftener, longer, or in one of them alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.core.chrome.breakdown import Kernel


@dataclass(frozen=True, slots=True)
class Difference:
    """Of one name: how often it ran and for how many seconds in the first trace and the second."""

    name: str
    category: str
    counts: tuple[int, int]
    seconds: tuple[float, float]

    @property
    def more(self) -> float:
        """Seconds that the second trace took longer."""
        return self.seconds[1] - self.seconds[0]


def difference(first: Sequence[Kernel], second: Sequence[Kernel]) -> list[Difference]:
    """The kernels of either trace by name, the largest difference in seconds first."""
    one, other = ({kernel.name: kernel for kernel in side} for side in (first, second))
    found = []
    for name in {**one, **other}:
        sides = one.get(name), other.get(name)
        category = next(side.category for side in sides if side is not None)
        counts = tuple(side.count if side else 0 for side in sides)
        seconds = tuple(side.seconds if side else 0.0 for side in sides)
        found.append(Difference(name, category, counts, seconds))  # type: ignore[arg-type]
    return sorted(found, key=lambda each: -abs(each.more))
