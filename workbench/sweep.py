"""A sweep: a study's run measured over one knob, as lines of one panel of curves.

It is data of a study: which knob, which lines, and a pure function of a finished run's log. The
study's own driver runs each point; runs that several lines ask for are made once.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import Config, to_dict, update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.names import suggest
from engine.core.plot import BOUND, Plot
from engine.core.run import Driver, Live
from workbench.claim import Changes, RunConfig
from workbench.finding import Figure
from workbench.points import runner

Measure: TypeAlias = Callable[[Log], Any]  # one value, or one for each problem: the interval's rows
Knob: TypeAlias = str | Callable[[Any, Any], Changes]  # a path, or changes from (config, value)


@dataclass(frozen=True)
class Sweep:
    """One panel: `measure` over the values of a knob, a line for each of `series`.

    `over`: a knob's path (or a function of config and value that gives knob changes) and its
    values; None where one run gives a whole line, `measure` then gives its columns [2 or 4, K].
    `series`: a line's name -> knob changes. `measure`: a pure function of a log, or several by
    name, each of which is a line of every series. `changes`: knobs of all points. `repeats`: knob
    changes (seeds) each point is run under, whose values are pooled. `along`: where a point stands
    on the x axis if not at the knob's value. `bounds`: a limit's name -> its y at an x.
    `modelled`: the points are predictions, not measurements.
    """

    plot: Plot
    over: tuple[Knob, tuple[Any, ...]] | None
    measure: Measure | Mapping[str, Measure]
    series: Mapping[str, Changes] = field(default_factory=lambda: {"": {}})
    changes: Changes = field(default_factory=dict)
    repeats: tuple[Changes, ...] = ({},)
    along: Measure | None = None
    bounds: Mapping[str, Callable[[float], float]] = field(default_factory=dict)
    modelled: bool = False

    def lines(self) -> list[str]:
        """The lines' names, bounds left out."""
        return [_name(line, name) for line in self.series for name in self.measures()]

    def measures(self) -> Mapping[str, Measure]:
        """Each measure by its name; "" where there is one."""
        return self.measure if isinstance(self.measure, Mapping) else {"": self.measure}

    def points(self, config: Config) -> Iterator[tuple[str, Any, Config]]:
        """Line, the knob's value and the config of every run."""
        base = update(config, self.changes)
        for line, changes in self.series.items():
            for value in self.over[1] if self.over else (None,):
                for again in self.repeats:
                    turned = update(update(base, changes), again)
                    yield line, value, update(turned, self._set(turned, value))

    def _set(self, config: Config, value: Any) -> Changes:
        if self.over is None:
            return {}
        knob = self.over[0]
        return {knob: value} if isinstance(knob, str) else knob(config, value)


def _name(line: str, measure: str) -> str:
    return ", ".join(part for part in (line, measure) if part)


class _Use(NamedTuple):
    """Where a run's log is used: a sweep's place, a line of it and the knob's value."""

    sweep: int
    line: str
    value: Any


def named(sweeps: Sequence[Sweep], title: str) -> Sweep:
    """The sweep of that title. Raises BadInput."""
    for each in sweeps:
        if each.plot.title == title:
            return each
    titles = [each.plot.title for each in sweeps]
    raise BadInput(f"sweep {title!r}: no such curve; {suggest(title, titles)}")


def drawing(driver: Driver, sweeps: Sequence[Sweep]) -> Driver:
    """A driver that draws `sweeps` of the config it is given as curves of its own log."""

    def drive(config: Config, live: Live) -> None:
        live.open(config, WallClock(), plots=[each.plot for each in sweeps])
        draw(sweeps, config, live, runner(driver, live))

    return drive


def draw(sweeps: Sequence[Sweep], config: Config, live: Live, run: RunConfig) -> None:
    """Run every point once and put the lines beside the log of `live`, as far as they have come."""
    asked: dict[str, tuple[Config, list[_Use]]] = {}
    for place, sweep in enumerate(sweeps):
        for line, value, turned in sweep.points(config):
            key = json.dumps(to_dict(turned), sort_keys=True, default=str)
            asked.setdefault(key, (turned, []))[1].append(_Use(place, line, value))
    seen = [_Lines(sweep) for sweep in sweeps]
    for done, (turned, uses) in enumerate(asked.values()):
        live.report("running every point", done, len(asked))
        log = run(turned)
        for use in uses:
            seen[use.sweep].take(use.line, use.value, log)
        for place in dict.fromkeys(use.sweep for use in uses):
            seen[place].tell(live)
    live.report("running every point", len(asked), len(asked))


class _Lines:
    """What the points of a sweep came to so far."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self.values: dict[tuple[str, Any], list[np.ndarray]] = {}
        self.places: dict[tuple[str, Any], list[float]] = {}

    def take(self, line: str, value: Any, log: Log) -> None:
        for name, measure in self.sweep.measures().items():
            key = (_name(line, name), value)
            self.values.setdefault(key, []).append(np.asarray(measure(log)))
            along = self.sweep.along
            if self.sweep.over is not None:
                place = value if along is None else along(log)
                self.places.setdefault(key, []).append(float(place))

    def tell(self, live: Live) -> None:
        """Put what there is of each line beside the log."""
        sweep, now = self.sweep, live.log.duration
        if sweep.over is None:
            for (line, _), (columns, *_) in self.values.items():
                live.curve(now, sweep.plot, line, columns, modelled=sweep.modelled)
            return
        places: set[float] = set()
        for line in sweep.lines():
            rows = [self._row(key, values) for key, values in self.values.items() if key[0] == line]
            places |= {row[0] for row in rows}
            certain = not all(math.isfinite(end) for row in rows for end in row[2:])
            points = [row[:2] for row in rows] if certain else rows
            live.curve(now, sweep.plot, line, sorted(points), modelled=sweep.modelled)
        for name, bound in sweep.bounds.items():
            points = [(x, bound(x)) for x in sorted(places)]
            live.curve(now, sweep.plot, name + BOUND, points)

    def _row(self, key: tuple[str, Any], values: list[np.ndarray]) -> tuple[float, ...]:
        """x, mean, low, high of a point."""
        pooled = np.concatenate([np.atleast_1d(each) for each in values])
        if not pooled.size:
            return (float(np.mean(self.places[key])), math.nan, math.nan, math.nan)
        figure = Figure.mean(pooled)
        return (float(np.mean(self.places[key])), figure.value, figure.low, figure.high)
