"""A regime map: a claim's figure over a free knob, where it holds and where it stops.

It is data of a study; `draw` runs the claim's check at each value. One look must answer *when is
this paper right?*, so the map's title is a sentence computed from its points.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from engine.core.config import Config, knobs, to_dict, update
from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.names import suggest
from engine.core.run import Live
from workbench.claim import Changes, Check, Claim, Outcome, RunConfig
from workbench.finding import Figure, Finding

# What judges a value: (config, value, run_config, fast) -> Outcome
At: TypeAlias = Callable[[Any, Any, RunConfig, bool], Outcome]


REMEMBERED = 5  # logs, while a map is drawn: those of five draws


@dataclass(frozen=True)
class Regime:
    """A claim over a knob that its figure rests on.

    `knob`: the path of a knob, or a name of what `judged` varies. `values`: from small to large;
    `coarse`: those of the small setting. `x`: what they are, with the unit in brackets; `y`: what
    the figure is. `paper`: the value the paper's own setting stands at, named by `paper_is` ("the
    paper's A100"); None where no paper says. `default`: where the study's setting stands.
    `changes`: knobs of the whole map. `series`: a line's name -> knob changes. `judged`: the check
    at a value; by default the claim's own with the knob set. `less`: how much of the claim's load
    it judges, where that is less or another ("one draw"): its axis says so. Where it says nothing,
    the point at the default is the claim's own figure, and a test holds it to the record.
    """

    claim: str
    knob: str
    values: tuple[float, ...]
    x: str
    y: str
    coarse: tuple[float, ...] = ()
    paper: float | None = None
    paper_is: str = "the paper"
    default: float | None = None
    changes: Changes = field(default_factory=dict)
    series: Mapping[str, Changes] = field(default_factory=lambda: {"": {}})
    judged: At | None = None
    log_x: bool = False
    log_y: bool = False
    noun: str = ""  # what the values count, in a sentence: "pages"; "" where they have a unit
    less: str = ""

    @property
    def name(self) -> str:
        """What it is asked for by."""
        return f"{self.claim} over {self.knob}"

    @property
    def upright(self) -> str:
        """What its upright axis is called: `y` and how much of the claim's load that is of."""
        if not self.less:
            return self.y
        told, bracket, unit = self.y.rpartition(" (") if self.y.endswith(")") else (self.y, "", "")
        return f"{told}, {self.less}{bracket}{unit}"

    def at(self, fast: bool) -> tuple[float, ...]:
        """The values of a size of map: all, or of the small one the coarse ones."""
        if not fast:
            return self.values
        return self.coarse or tuple(
            dict.fromkeys((self.values[0], self.values[len(self.values) // 2], self.values[-1]))
        )


@dataclass(frozen=True)
class Point:
    """What a claim came to at one value of the knob; `told` in words, where that is no number."""

    line: str
    value: float
    figure: Figure | None
    needed: float | None
    holds: bool
    finding: Finding
    told: str = ""

    @property
    def stands(self) -> bool:
        """Whether the check says yes and the figure does not say the contrary: where it is judged
        by less than the paper's sentence, no map calls the rest true."""
        return self.holds and self.finding != "contrary"

    def row(self) -> dict[str, Any]:
        return {**asdict(self), "figure": self.figure.row() if self.figure else None}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "Point":
        """What `row` gave."""
        figure = Figure.of_row(row["figure"]) if row["figure"] else None
        return cls(**{**row, "figure": figure})


@dataclass(frozen=True)
class RegimeMap:
    """A regime's points, and the machine and size they were run on."""

    name: str
    points: tuple[Point, ...]
    machine: str
    fast: bool

    def lines(self) -> list[str]:
        return list(dict.fromkeys(point.line for point in self.points))

    def row(self) -> dict[str, Any]:
        """As JSON has it."""
        plain = {"name": self.name, "machine": self.machine, "fast": self.fast}
        return {**plain, "points": [point.row() for point in self.points]}

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> "RegimeMap":
        """What `row` gave."""
        points = tuple(Point.of_row(each) for each in row["points"])
        return cls(row["name"], points, row["machine"], row["fast"])


def named(regimes: tuple[Regime, ...], name: str) -> Regime:
    """The regime of that name, or of that claim's id. Raises BadInput."""
    for each in regimes:
        if name in (each.name, each.claim):
            return each
    raise BadInput(f"regime {name!r}: no such map; {suggest(name, [r.name for r in regimes])}")


def draw(
    regime: Regime, claim: Claim, config: Config, run: RunConfig, machine: str, fast: bool,
    live: Live | None = None,
) -> RegimeMap:  # fmt: skip
    """The claim judged at each value, for each line; `live` hears how far it is."""
    plan = [(line, value) for line in regime.series for value in regime.at(fast)]
    run = run if claim.timed else remembering(run)
    points = []
    for done, (line, value) in enumerate(plan):
        if live is not None:
            live.report(f"{regime.name}: {value:g}", done, len(plan))
            live.poll(live.log.duration)
        turned = update(update(config, regime.changes), regime.series[line])
        points.append(_point(claim, line, value, judged(regime, claim, turned, value, run, fast)))
    return RegimeMap(regime.name, tuple(points), machine, fast)


def _point(claim: Claim, line: str, value: float, outcome: Outcome) -> Point:
    """A figure that is no number, as of nothing divided by, is told in words."""
    figure, told = outcome.figure, ""
    if figure is not None and not math.isfinite(figure.value):
        figure, told = None, outcome.measured
    outcome, finding = claim.borne(outcome), claim.came_to(outcome)
    return Point(line, float(value), figure, outcome.needed, outcome.holds, finding, told)


def remembering(run: RunConfig) -> RunConfig:
    """`run` that has its last logs at hand: the points of a map often ask for one rival."""
    known: dict[str, Log] = {}

    def again(config: Config) -> Log:
        words = json.dumps(to_dict(config), sort_keys=True, default=str)
        known[words] = log = known.pop(words) if words in known else run(config)
        while len(known) > REMEMBERED:
            del known[next(iter(known))]
        return log

    return again


def judged(
    regime: Regime, claim: Claim, config: Config, value: float, run: RunConfig, fast: bool
) -> Outcome:
    """The outcome at one value of the knob."""
    if regime.judged is not None:
        return regime.judged(config, value, run, fast)
    return claim.check(_at(config, regime.knob, value), run, fast)


def in_runs(check: Check, knob: str) -> At:
    """The check with the knob set in each of its runs, where it sets the knob there itself."""

    def judged(config: Any, value: float, run: RunConfig, fast: bool) -> Outcome:
        return check(config, lambda turned: run(_at(turned, knob, value)), fast)

    return judged


def _at(config: Config, path: str, value: float) -> Config:
    """A config with a knob at a value, a whole number where the knob is one."""
    whole = {knob.path: knob.type for knob in knobs(config)}.get(path) == "int"
    return update(config, {path: int(value) if whole else value})


def sentence(
    regime: Regime, drawn: RegimeMap, written: Callable[[float], str], direction: bool = False,
    brief: bool = False,
) -> str:  # fmt: skip
    """What the map says: where the claim holds, where the paper's figure is reached, and where the
    paper stands; `written` words a value. `direction`: the paper states no figure to reach.
    `brief`: where the claim holds alone."""
    reaches = "goes the paper's way" if direction else "reaches the paper's figure"
    noun = f" {regime.noun}" if regime.noun else ""
    said, shared = dict[str, list[str]](), list[str]()
    for line in drawn.lines():
        own = sorted((p for p in drawn.points if p.line == line), key=lambda p: p.value)
        values = [written(point.value) for point in own]
        stands = [point.stands for point in own]
        where = "holds " + _where(values, stands, noun)
        if not brief and any(point.finding != "not tried" for point in own):
            reached = [point.finding == "reproduced" for point in own]
            if reached == stands:
                where = f"holds and {reaches} {_where(values, stands, noun)}"
            else:
                shared.append(f"{reaches} {_where(values, reached, '')}")
                where += f", {shared[-1]}"
        said.setdefault(where, []).append(line)
    lines = len(drawn.lines())
    text = "; ".join(f"{_who(own, lines)}{where}" for where, own in said.items())
    if lines > 1 and len(shared) == lines and len(set(shared)) == 1:  # said once
        who = "none" if " nowhere " in shared[0] else "each"
        once = shared[0].replace(" nowhere ", " ")
        text = f"{text.replace(f', {shared[0]}', '')}; {who} {once}"
    if regime.paper is not None and not brief:
        text += f"; {regime.paper_is} has {written(regime.paper)}"
    return text[0].upper() + text[1:]


def stretches(places: list[bool]) -> list[tuple[int, int]]:
    """First and last place of each run of true ones."""
    runs: list[tuple[int, int]] = []
    for place in (place for place, here in enumerate(places) if here):
        if runs and runs[-1][1] == place - 1:
            runs[-1] = (runs[-1][0], place)
        else:
            runs.append((place, place))
    return runs


def _who(lines: list[str], of: int) -> str:
    """Of which of so many lines something is said."""
    if len(lines) == of > 1:
        return "both: " if of == 2 else f"all {of}: "
    names = " and ".join(lines)
    return f"{names}: " if names else ""


def _where(values: list[str], places: list[bool], noun: str) -> str:
    """In words, the values at which `places` are true."""
    runs = stretches(places)
    if not runs:
        return f"nowhere from {values[0]} to {values[-1]}{noun}"
    if runs == [(0, len(places) - 1)]:
        return f"everywhere from {values[0]} to {values[-1]}{noun}"
    parts = []
    for begin, end in runs:
        low, high = values[begin], values[end]
        if begin == 0:
            parts.append(f"up to {high}{_many(high, noun)}")
        elif end == len(places) - 1:
            parts.append(f"from {low}{_many(low, noun)} on")
        else:
            one = f"at {low}{_many(low, noun)}"
            parts.append(one if begin == end else f"from {low} to {high}{noun}")
    return " and ".join(parts)


def _many(value: str, noun: str) -> str:
    """The noun behind a value: of one its first word alone is no longer several."""
    if value != "1":
        return noun
    return re.sub(r"^( \w+?)(s|ren)\b", r"\1", noun)
