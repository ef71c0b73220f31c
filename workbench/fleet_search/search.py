"""Search over fleet designs: shapes first, then routers and limits of the best, then the winner
again under other draws; every design serves the same requests."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.core.config import update
from engine.core.errors import BadInput
from engine.distributed.fleet import Fleet
from engine.fleet.config import FleetConfig
from workbench.fleet_search.asked import FleetSearch
from workbench.fleet_search.designs import Design, fleet_of, shapes, variants
from workbench.fleet_search.play import WORK, Row, piece
from workbench.fleet_search.spread import step_ends

ONE_PERCENT = math.log(1.01)  # a smaller difference of goodput is none
APART = 1e-3  # requests arrive so many times as fast where each is to be alone
ARRIVALS = ("rate", "speed")  # knobs of workloads that say how fast requests arrive


@dataclass
class Searched:
    """What is known so far."""

    asked: FleetSearch
    rows: list[Row] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # ranks that do not fit, and why
    total: int = 0  # designs that are to be played, as far as is known
    stage: str = ""
    again: list[Row] = field(default_factory=list)  # the winner under other draws
    alone: Row | None = None  # requests one by one, where no design keeps the objective
    paces: tuple[float, ...] = ()  # steps over modelled ones, at the ends of their interval
    paced: list[Row] = field(default_factory=list)  # the winner with steps of each

    @property
    def winner(self) -> Row | None:
        """The cheapest design that keeps the objective."""
        good = [row for row in self.rows if row.meets(self.asked.slo)]
        return min(good, key=self._dear) if good else None

    @property
    def nearest(self) -> Row | None:
        """The one with the most good requests a second, where none keeps the objective."""
        played = [row for row in self.rows if not row.failed]
        return max(played, key=lambda r: (r.figures["good"], -r.design.devices), default=None)

    def cost(self, row: Row) -> float:
        """Of a million answer tokens: dollars, or device-hours where no price is told."""
        return row.figures["cost" if self.asked.price else "device_hours"]

    def _dear(self, row: Row) -> tuple[float, float]:
        return self.cost(row), row.figures["watts"]

    def front(self) -> list[Row]:
        """Designs that no other one beats in goodput, cost and watts together: of those that keep
        the objective, or of all where none does. By cost."""
        played = [row for row in self.rows if not row.failed and row.figures["finished"]]
        good = [row for row in played if row.meets(self.asked.slo)]
        found: list[Row] = []
        for row in sorted(good or played, key=self._dear):
            mine = self._axes(row)
            if not any(
                all(a <= b for a, b in zip(self._axes(other), mine, strict=True)) for other in found
            ):
                found.append(row)
        return found

    def _axes(self, row: Row) -> tuple[float, float, float]:
        """What is to be small."""
        goodput = row.figures["goodput"]
        steps = round(math.log(goodput) / ONE_PERCENT) if goodput > 0 else -math.inf
        return -steps, self.cost(row), row.figures["watts"]

    def best(self, count: int) -> list[Design]:
        """The most promising designs so far."""
        slo = self.asked.slo

        def order(row: Row) -> tuple[float, ...]:
            if row.meets(slo):
                return 0.0, *self._dear(row)
            return 1.0, -row.figures["good"], float(row.design.devices)

        played = [row for row in self.rows if not row.failed]
        return [row.design for row in sorted(played, key=order)[:count]]


def search(asked: FleetSearch, pool: Fleet) -> Iterator[Searched]:
    """What is known after each design, the last one whole. Raises BadInput where none fits.

    `pool` plays the designs; closing the iterator ends those under way.
    """
    found = Searched(asked)
    begun, found.left_out = shapes(asked)
    found.total, found.stage = len(begun), "shapes"
    yield found
    yield from _played(found, begun, pool)
    others = [
        each for shape in found.best(asked.tried.finalists) for each in variants(asked, shape)
    ]
    found.total += len(others)
    found.stage = "routers and limits of the best"
    yield from _played(found, others, pool)
    if found.rows and all(row.failed for row in found.rows):
        raise BadInput(found.rows[0].failed)
    yield from _checked(found, pool)
    found.stage = "done"
    yield found


def _played(found: Searched, designs: Sequence[Design], pool: Fleet) -> Iterator[Searched]:
    """Each design's row as it comes; one that cannot be described is a row that says why."""
    given, made = [], []
    for design in designs:
        try:
            given.append(piece(found.asked, fleet_of(found.asked, design)))
            made.append(design)
        except BadInput as fault:
            found.rows.append(Row(design, failed=str(fault)))
    for row in _rows(made, given, pool):
        found.rows.append(row)
        yield found


def _rows(designs: Sequence[Design], given: list[dict[str, Any]], pool: Fleet) -> Iterator[Row]:
    for done in pool.run(WORK, given):
        yield Row(designs[done.number], done.value or {}, done.failed)


def _checked(found: Searched, pool: Fleet) -> Iterator[Searched]:
    """The winner under other draws; or, without one, requests that are each alone."""
    winner, asked = found.winner, found.asked
    if winner is not None:
        draws = [asked.seed + 1 + number for number in range(asked.tried.again)]
        found.total += len(draws)
        found.stage = "the winner under other draws"
        others = [asked.model_copy(update={"seed": seed}) for seed in draws]
        given = [piece(each, fleet_of(each, winner.design)) for each in others]
        for row in _rows([winner.design] * len(given), given, pool):
            found.again.append(row)
            yield found
        yield from _paced(found, winner.design, pool)
        return
    nearest = found.nearest
    config = _alone(asked, nearest.design) if nearest is not None else None
    if config is None or nearest is None:
        return
    found.total += 1
    found.stage = "requests one by one"
    for row in _rows([nearest.design], [piece(asked, config)], pool):
        found.alone = row
        yield found


def _paced(found: Searched, design: Design, pool: Fleet) -> Iterator[Searched]:
    """The winner with steps as short and as long as the cost model may be wrong."""
    config = fleet_of(found.asked, design)
    found.paces = step_ends(config) or ()
    found.total += len(found.paces)
    found.stage = "the winner with steps shorter and longer"
    paced = [update(config, {"pace": pace}) for pace in found.paces]
    given = [piece(found.asked, each) for each in paced]
    for row in _rows([design] * len(given), given, pool):
        found.paced.append(row)
        yield found


def _alone(asked: FleetSearch, design: Design) -> FleetConfig | None:
    """One replica whose requests arrive so far apart that none waits; None where the workload has
    no such knob."""
    config = fleet_of(asked, Design(design.tensor, 1, tokens=design.tokens))
    for name in ARRIVALS:
        now = getattr(config.engine.workload, name, None)
        if isinstance(now, float) and now:
            return update(config, {f"engine.workload.{name}": now * APART})
    return None
