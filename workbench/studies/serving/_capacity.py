"""Capacity: the highest load at which a fleet still keeps what was promised, by halving."""

from collections.abc import Callable


def most(
    keeps: Callable[[float], bool], low: float, high: float, steps: int, least: float
) -> float:
    """The highest load of those tried that keeps it, in so many halvings between two loads; where
    `low` is too much, between others as far below. Who keeps it at none above `least` has that."""
    span, asked = high / low, low
    found = _halved(keeps, low, high, steps)
    if found > low:
        return found
    while low > least and not keeps(low):
        low, high = max(low / span, least), low
    return low if low == asked else _halved(keeps, low, high, steps)


def _halved(keeps: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """`low` where none above it keeps it."""
    for _ in range(steps):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low
