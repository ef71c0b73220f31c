"""Interleaved measurements: curves over one knob within a run, all series in turns at each value.

What else the machine does meanwhile then meets every series alike, which runs of a driver one
after another (a study's `Sweep`) cannot give. A driver says as data what is measured and what of
it is drawn; `measure` does it, shows how far it is and can be stopped between any two.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from engine.core.clock import Clock
from engine.core.plot import BOUND, Plot
from engine.core.run import Live

Measured: TypeAlias = dict[str, list[float]]  # series -> what was measured of it at one value
Point: TypeAlias = Callable[[int, str, Measured], Sequence[float] | None]


@dataclass(frozen=True)
class Interleaved:
    """Series over the `values` of a knob, rising.

    `what`: the words of its progress. `at`: a value -> each series' measurement as a call; inputs
    are made there, once a value. `rounds`: a value -> how often all are measured there. `enough`:
    whether a value and what was measured there end it; no greater one is tried. `panels`: of each
    plot a function of value, series and all that was measured there, which gives y or (y, low,
    high), None for no point. `bounds`: of each plot its limits by name, y or None there.
    """

    what: str
    values: Sequence[int]
    at: Callable[[int], Mapping[str, Callable[[], float]]]
    panels: Mapping[Plot, Point]
    rounds: Callable[[int], int] = lambda value: 1
    enough: Callable[[int, Measured], bool] = lambda value, found: False
    bounds: Mapping[Plot, Mapping[str, Callable[[int], float | None]]] = field(default_factory=dict)


def measure(asked: Interleaved, clock: Clock, live: Live) -> dict[int, Measured]:
    """Measure and draw it, a curve as far as it has come; gives what was measured at each value.

    Raises Stopped where the run is stopped.
    """
    measured: dict[int, Measured] = {}
    for number, value in enumerate(asked.values):
        live.report(asked.what, number, len(asked.values))
        calls = asked.at(value)
        measured[value] = {series: [] for series in calls}
        for _ in range(asked.rounds(value)):
            for series, call in calls.items():
                live.poll(clock.now())
                measured[value][series].append(call())
        for series in dict.fromkeys(name for each in measured.values() for name in each):
            for plot, point in asked.panels.items():
                if line := list(_line(point, series, measured)):
                    live.curve(clock.now(), plot, series, line)
        if not number:  # after the first series: plots are shown in the order they were drawn in
            _draw_bounds(asked, clock, live)
        if asked.enough(value, measured[value]):
            break
    live.report(asked.what, len(asked.values), len(asked.values))
    return measured


def _draw_bounds(asked: Interleaved, clock: Clock, live: Live) -> None:
    for plot, limits in asked.bounds.items():
        for name, bound in limits.items():
            points = [(x, y) for x in asked.values if (y := bound(x)) is not None]
            live.curve(clock.now(), plot, name + BOUND, points)


def _line(
    point: Point, series: str, measured: Mapping[int, Measured]
) -> Iterator[tuple[float, ...]]:
    """Where a series stands at each value that has a point of it."""
    for value, found in measured.items():
        y = point(value, series, found) if series in found else None
        if y is not None:
            yield float(value), *map(float, y)
