"""A response: every figure of a study's runs over one knob or two, under several seeds.

It is a sweep chosen by a person: `asked` makes it from text, `Response` runs its points in a run of
its own that can be stopped, and `table` gives the means and intervals of any figure so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.core.clock import WallClock
from engine.core.config import Config, Knob, knobs, update
from engine.core.errors import BadInput
from engine.core.names import suggest
from engine.core.plot import Plot
from engine.core.run import Live, Run
from workbench.finding import Figure
from workbench.grid import figures
from workbench.points import runner
from workbench.study import Study
from workbench.sweep import Sweep

MOST = 240  # runs of one response
VALUES, LINES, SEEDS = 24, 12, 10  # at most
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of where a knob stands: values to begin with


@dataclass(frozen=True)
class Row:
    """A run: the second knob's value as text ("" without one), the first's, the seed, and the
    figures, or why there are none."""

    line: str
    value: str
    seed: int
    figures: dict[str, float] = field(default_factory=dict)
    failed: str = ""


def knob_named(config: Config, path: str) -> Knob:
    """The knob of that path. Raises BadInput."""
    known = {knob.path: knob for knob in knobs(config)}
    if path not in known:
        raise BadInput(f"knob {path[:80]!r}: no such knob; {suggest(path, known)}")
    return known[path]


def usual(knob: Knob) -> list[str]:
    """Values to begin with: every choice, or some around where the knob stands."""
    if knob.type == "choice":
        return list(knob.choices)[:VALUES]
    if knob.type == "bool":
        return ["false", "true"]
    if knob.type == "str":
        return [str(knob.value)]
    low = -float("inf") if knob.low is None else knob.low
    high = float("inf") if knob.high is None else knob.high
    around = [knob.value * factor for factor in FACTORS] if knob.value else [0, 1, 2, 4, 8]
    kept = [min(high, max(low, value)) for value in around]
    return list(dict.fromkeys(str(round(v)) if knob.type == "int" else f"{v:.4g}" for v in kept))


def listed(text: str, what: str, most: int) -> list[str]:
    """Values written with commas between. Raises BadInput for none, or too many."""
    found = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not 1 <= len(found) <= most:
        raise BadInput(f"{what}: {len(found)} values; give 1 to {most}, with commas between")
    return found


def asked(
    config: Config, knob: str, values: str, second: str = "", seconds: str = ""
) -> Sweep:  # fmt: skip
    """The sweep of `knob` over `values`, a line for each value of `second`. Raises BadInput for
    what the config does not take, before anything runs."""
    over = listed(values, knob_named(config, knob).path, VALUES)
    lines = listed(seconds, knob_named(config, second).path, LINES) if second else []
    if second == knob:
        raise BadInput(f"{knob}: chosen twice; take another second knob")
    series = {value: {second: value} for value in lines} or {"": {}}
    sweep = Sweep(Plot("response", knob, ""), (knob, tuple(over)), figures, series)
    for _ in sweep.points(config):  # each is a config, or says in a line why not
        pass
    return sweep


class Response:
    """Runs of one study, the newest sweep asked for. `rows`: what has come so far."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self.run: Run | None = None
        self.sweep: Sweep | None = None
        self.rows: list[Row] = []

    def ask(self, config: Config, sweep: Sweep, seeds: int, seed: int = 0) -> Run:
        """Run every point under `seeds` seeds from `seed` on. Raises BadInput for too many."""
        count = len(list(sweep.points(config))) * seeds
        if not 1 <= seeds <= SEEDS or count > MOST:
            raise BadInput(f"{count} runs; at most {MOST}, under 1 to {SEEDS} seeds")
        self.stop()
        self.sweep, self.rows = sweep, []
        self.run = Run.start(
            self._driver(sweep, range(seed, seed + seeds), self.rows), config, seed=seed,
            study=self.study.slug,
        )  # fmt: skip
        return self.run

    def _driver(self, sweep: Sweep, seeds: Sequence[int], rows: list[Row]) -> Any:
        def drive(config: Config, live: Live) -> None:
            live.open(config, WallClock())
            points = [(seed, *point) for seed in seeds for point in sweep.points(config)]
            for done, (seed, line, value, turned) in enumerate(points):
                live.report("running every point", done, len(points))
                try:
                    turned = _seeded(turned, seed - seeds[0])
                    found = figures(runner(self.study.driver, live, seed)(turned))
                    rows.append(Row(line, str(value), seed, found))
                except BadInput as fault:  # the others go on
                    rows.append(Row(line, str(value), seed, failed=str(fault)))
            live.report("running every point", len(points), len(points))

        return drive

    def stop(self) -> None:
        if self.run is not None:
            self.run.stop()


def _seeded(config: Config, further: int) -> Config:
    """A config whose own seed, where it has one, is `further` on: what a load is drawn from."""
    own = next((knob.value for knob in knobs(config) if knob.path == "seed"), None)
    return config if own is None or not further else update(config, {"seed": own + further})


def names(rows: Sequence[Row]) -> list[str]:
    """The figures there are, those that vary from point to point first."""
    known = list(dict.fromkeys(name for row in rows for name in row.figures))
    vary = [n for n in known if len({row.figures.get(n) for row in rows}) > 1]
    return [*vary, *(name for name in known if name not in vary)]


def table(rows: Sequence[Row], name: str) -> dict[tuple[str, str], Figure]:
    """(line, value) -> mean of a figure over the seeds, with its interval."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if name in row.figures:
            found.setdefault((row.line, row.value), []).append(row.figures[name])
    return {key: Figure.mean(values) for key, values in found.items()}
