"""A drawing: a regime map or a sweep of a study, drawn when asked for, in a run of its own.

It can be stopped, says how far it is, and gives a Bokeh figure of what there is so far. A map that
is known already (shipped, or drawn here before) is there at once.
"""

from typing import Any

from engine.core.clock import WallClock
from engine.core.config import Config
from engine.core.run import Live, Run
from widgets.figure import figure
from widgets.figure.of_log import figure_of
from workbench import kept_maps
from workbench import regime as regimes
from workbench import sweep as sweeps
from workbench.points import runner
from workbench.regime import Regime, RegimeMap
from workbench.regime_figure import regime_figure
from workbench.study import Study, here
from workbench.sweep import Sweep


class MapDrawing:
    """A regime map. `map` is the newest there is, None before the first."""

    def __init__(self, study: Study, regime: Regime, seed: int = 0) -> None:
        self.study, self.regime, self.seed = study, regime, seed
        self.name, self.claim = regime.name, study.claim(regime.claim)
        self.run: Run | None = None
        self.map: RegimeMap | None = kept_maps.shipped(study.slug).get(self.name)
        self.from_here = False  # whether `map` was drawn on this machine

    def ask(self, config: Config, fast: bool = True, fresh: bool = False) -> Run | None:
        """Draw it for `config`: at once where it is known and `fresh` does not ask for a new one,
        else by a run that is given back."""
        known = None if fresh else kept_maps.known(
            self.study.slug, self.name, config, self.seed, fast
        )  # fmt: skip
        if known is not None:
            self.map, self.from_here = known, True
            return None
        self.stop()
        self._fast = fast
        self.run = Run.start(self._drive, config, seed=self.seed, study=self.study.slug)
        return self.run

    def _drive(self, config: Config, live: Live) -> None:
        live.open(config, WallClock())
        run = runner(self.study.driver, live)
        drawn = regimes.draw(self.regime, self.claim, config, run, here(), self._fast, live)
        kept_maps.keep(drawn, self.study.slug, config, self.seed)
        self.map, self.from_here = drawn, True

    def stop(self) -> None:
        if self.run is not None:
            self.run.stop()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see yet."""
        return self.map is None

    def figure(self, *, dark: bool = False, **size: int) -> Any:
        """The map as a Bokeh figure. Raises BadInput where there is none yet."""
        return regime_figure(self.regime, self.claim, self.map, dark=dark, **size)


class SweepDrawing:
    """A sweep's curves."""

    def __init__(self, study: Study, sweep: Sweep, seed: int = 0) -> None:
        self.study, self.sweep, self.seed = study, sweep, seed
        self.name = sweep.plot.title
        self.run: Run | None = None

    def ask(self, config: Config, fast: bool = True, fresh: bool = False) -> Run | None:
        """Draw it for `config`, by the run that is given back."""
        self.stop()
        driver = sweeps.drawing(self.study.driver, (self.sweep,))
        self.run = Run.start(driver, config, seed=self.seed, study=self.study.slug)
        return self.run

    def stop(self) -> None:
        if self.run is not None:
            self.run.stop()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to see yet."""
        return self.run is None or not self.run.log.blobs

    def figure(self, *, dark: bool = False, **size: int) -> Any:
        """The curves so far as a Bokeh figure. Raises BadInput where there are none."""
        if self.run is None:
            return figure((), dark=dark)
        return figure_of(self.run.log, "curves", dark=dark, **size)


Drawing = MapDrawing | SweepDrawing


def drawings(study: Study, seed: int = 0) -> list[Drawing]:
    """Every map and every sweep of a study, the maps first."""
    maps = [MapDrawing(study, regime, seed) for regime in study.regimes]
    return [*maps, *(SweepDrawing(study, sweep, seed) for sweep in study.sweeps)]
