"""A grid: a study run at every combination of knob values, each in a process of its own.

In come a study's slug and what to vary; out comes a row a point, with its figures or why there are
none.
"""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from engine.core.errors import BadInput
from engine.core.events import Level
from engine.core.log import Log
from engine.distributed.fleet import Fleet
from workbench.study import Study

MOST = 4096  # points
WORK = "workbench.grid:point"
SHOWN = 6  # figures in a table that names none
QUALIFIED = re.compile(r"(?:, |: )")  # what follows a figure's name and differs by run


@dataclass(frozen=True, slots=True)
class Row:
    """A point and what came of it; `headline`: what its study's first view says, with units."""

    point: dict[str, Any]
    figures: dict[str, float]
    failed: str = ""
    headline: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, point: dict[str, Any], value: Any, failed: str) -> Self:
        """A row of what `point` gave, which is None where it failed."""
        came = value or {}
        return cls(dict(point), came.get("figures", {}), failed, came.get("headline", {}))


def grid(over: Sequence[str]) -> list[dict[str, str]]:
    """`KNOB=A,B,C` texts as every combination, the last knob varying fastest. Raises BadInput."""
    axes = []
    for text in over:
        name, sign, values = text.partition("=")
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not sign or not name.strip() or not found:
            raise BadInput(f"--over {text!r}: not a knob and values; write --over KNOB=A,B,C")
        axes.append([(name.strip(), value) for value in found])
    names = [axis[0][0] for axis in axes]
    twice = next((name for name in names if names.count(name) > 1), None)
    if not axes or twice:
        raise BadInput(f"--over: {f'{twice} twice' if twice else 'nothing to vary'}")
    points = [dict(pairs) for pairs in itertools.product(*axes)]
    if len(points) > MOST:
        raise BadInput(f"--over: {len(points)} points; at most {MOST}")
    return points


def sweep(
    fleet: Fleet, slug: str, points: Sequence[dict[str, Any]], *, preset: str = "",
    changes: dict[str, Any] | None = None, seed: int = 0, figures: Sequence[str] = (),
) -> Iterator[tuple[int, Row]]:  # fmt: skip
    """Each point's number and row as it comes. Knobs no study has are refused before any runs;
    with `figures` the first point runs alone, and what it has none of is refused before the rest
    run, unless points choose among policies, whose figures differ.
    """
    from workbench.catalogue import study

    chosen = study(slug)
    for name in dict.fromkeys(name for point in points for name in point):
        _require_knob(chosen.configured(changes or {}, preset), name)
    pieces = [
        {"slug": slug, "preset": preset, "changes": {**(changes or {}), **point}, "seed": seed}
        for point in points
    ]
    begun = 0
    alike = not _chooses(chosen.configured(changes or {}, preset), points)
    if figures and len(points) > 1 and alike:
        begun = 1
        for done in fleet.run(WORK, pieces[:1]):
            row = Row.of(points[0], done.value, done.failed)
            shown([row], figures)
            yield 0, row
    for done in fleet.run(WORK, pieces[begun:]):
        number = done.number + begun
        yield number, Row.of(points[number], done.value, done.failed)


def _chooses(config: Any, points: Sequence[dict[str, Any]]) -> bool:
    """Whether a choice of a policy is varied."""
    from engine.core.config import knobs, renamed

    choices = {knob.path for knob in knobs(config) if knob.type == "choice"}
    return any(renamed(config, name)[0] in choices for point in points for name in point)


def point(given: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Run one point here and now; its figures, and its headline in words."""
    from engine.core.run import Run
    from workbench.catalogue import study

    chosen = study(given["slug"])
    config = chosen.configured(given["changes"], given["preset"])
    begun = time.perf_counter()
    run = Run.execute(chosen.driver, config, seed=given["seed"], study=given["slug"])
    found = {**figures(run.log), "took": time.perf_counter() - begun}
    return {"figures": found, "headline": headline(chosen, run.log)}


def headline(of: Study, log: Log) -> dict[str, str]:
    """The figures of the study's first view that has any, as it writes them at the run's end."""
    from widgets.view import view

    for name in of.views:
        fold = view(name).fold()
        fold.blobs = log.blobs
        for event in log:
            fold.add(event)
        told: dict[str, str] = {}
        for label, value in fold.frame().get("figures") or ():
            title, *rest = QUALIFIED.split(label, maxsplit=1)
            told[title] = f"{value} ({rest[0]})" if rest else value
        if told:
            return told
    return {}


def figures(log: Log) -> dict[str, float]:
    """Plain numbers of a run: time, what requests got, each level's last value and peak."""
    from workbench.summary import summary

    facts = summary(log)
    found = {"time": float(facts["seconds"])}
    found |= _numbers("", facts.get("serving") or {})
    last = {f"{level.lane}.{level.name}": float(level.value) for level in log.of(Level)}
    found |= last
    return found | {f"peak {name}": float(value) for name, value in facts["peaks"].items()}


def _numbers(under: str, facts: dict[str, Any]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in facts.items():
        if isinstance(value, dict):
            found |= _numbers(f"{under}{name}.", value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[f"{under}{name}"] = float(value)
    return found


def shown(rows: Sequence[Row], asked: Sequence[str]) -> list[str]:
    """The figures a table has columns for: those asked for, else the first that vary; of rows that
    have a headline, its figures and those that vary and have a unit.

    Raises BadInput for one that no point has.
    """
    names = list(dict.fromkeys(name for row in rows for name in row.figures))
    for name in asked:
        if names and name not in names:
            from engine.core.names import suggest

            raise BadInput(f"--figure {name!r}: no point has it; {suggest(name, names)}")
    if asked:
        return list(asked)
    varies = [
        name
        for name in names
        if name != "took" and len({row.figures.get(name) for row in rows}) > 1
    ]
    own = [name for name in varies if not name.startswith("peak ")]
    told = list(dict.fromkeys(name for row in rows for name in row.headline))
    if told:
        timed = [name for name in own if unit_of(name) and name != "time"]
        return [*(["time"] if "time" in names else []), *told, *timed][: SHOWN + 1]
    return (own or varies or names)[:SHOWN]


def cell(row: Row, name: str) -> str:
    """A figure of a row with its unit, as a table writes it."""
    from widgets.theme import figure

    if name in row.headline:
        return row.headline[name]
    return figure(row.figures[name], unit_of(name)) if name in row.figures else "–"


def unit_of(name: str) -> str:
    """The unit of a figure of that name: "B", "s", or "" for a number or a share."""
    last = name.rpartition(".")[2]
    if "bytes" in name or last.startswith("memory/"):
        return "B"
    is_time = name in ("time", "took", "makespan") or "time_" in name or "end_to_end" in name
    return "s" if is_time and last != "count" else ""


def _require_knob(config: Any, path: str) -> None:
    from engine.core.config import knobs, renamed
    from engine.core.names import suggest

    known = [knob.path for knob in knobs(config)]
    path = renamed(config, path)[0]
    # A knob of a policy that only some points choose is judged where it is chosen.
    if path not in known and not any(path.startswith(f"{name}.") for name in known):
        raise BadInput(f"--over {path!r}: no such knob; {suggest(path, known)}")
