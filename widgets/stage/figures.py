"""The figures of a run, and of several beside one another: plain rows from their logs alone."""

from collections.abc import Iterator, Sequence
from typing import Any

from engine.core.events import Branch
from engine.core.log import Log
from engine.core.measure import Serving, peak, serving
from widgets.theme import figure

TABLES = ("roofs", "curves", "lanes", "plan")  # facts of a header that are no settings
Row = tuple[str, tuple[str, ...], tuple[str, ...]]  # measure, in each log, ratios to the first
NONE = "–"  # in the place of a setting that a run has not


def measures(log: Log) -> dict[str, tuple[float, str]]:
    """Name -> (value, unit) of what the log can be asked; nothing where no request was served."""
    found: dict[str, tuple[float, str]] = {}
    if any(type(event) is Branch for event in log.events):
        found.update(_serving(serving(log)))
    for name, title in (("pages_used", "pages used at the peak"), ("waiting", "waiting at most")):
        if (highest := peak(log, name)) > 0:
            found[title] = (highest, "")
    found["duration"] = (log.duration, "s")
    return found


def _serving(came: Serving) -> dict[str, tuple[float, str]]:
    found = {
        "requests finished": (float(came.finished), ""),
        "tokens generated": (float(came.tokens), ""),
        "prompt tokens computed": (float(came.prefilled), ""),
        "tokens per second": (came.tokens_per_second, "/s"),
        "requests per second": (came.requests_per_second, "/s"),
        "preemptions": (float(came.preemptions), ""),
    }
    kinds = (
        ("time to first token", came.time_to_first_token),
        ("time per output token", came.time_per_output_token),
        ("end to end", came.end_to_end),
    )
    for title, latency in kinds:
        if latency.count:
            found[f"{title}, p50"] = (latency.p50, "s")
            found[f"{title}, p99"] = (latency.p99, "s")
    return found


def compared(logs: Sequence[Log]) -> list[Row]:
    """(measure, its figure in each log, its ratio to the first in each further one)."""
    each = [measures(log) for log in logs]
    names = list(dict.fromkeys(name for found in each for name in found))
    rows = []
    for name in names:
        values = [found.get(name) for found in each]
        shown = tuple("–" if value is None else figure(*value) for value in values)
        first = values[0]
        ratios = tuple(
            "–" if first is None or v is None or not first[0] else f"{v[0] / first[0]:.3g}×"
            for v in values[1:]
        )
        rows.append((name, shown, ratios))
    return rows


def differing(logs: Sequence[Log]) -> list[tuple[str, tuple[str, ...]]]:
    """The knobs (dotted) that differ between the headers, with the value in each log.

    Seed, clock, study and facts of the header that differ follow the knobs.
    """
    each = [dict(_settings(log)) for log in logs]
    names = list(dict.fromkeys(name for found in each for name in found))
    rows = [(name, tuple(_spelled(found, name) for found in each)) for name in names]
    return [(name, values) for name, values in rows if len(set(values)) > 1]


def _settings(log: Log) -> Iterator[tuple[str, Any]]:
    header = log.opened
    if header is None:
        return
    yield from flat(header.config)
    yield "seed", header.seed
    yield "clock", header.clock
    yield "study", header.study
    for name, value in flat({k: v for k, v in header.facts.items() if k not in TABLES}):
        yield f"{name} (of the run)", value


def flat(fields: dict[str, Any], under: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path and value of every plain value of nested fields."""
    for name, value in fields.items():
        path = f"{under}{name}"
        if isinstance(value, dict):
            yield from flat(value, f"{path}.")
        else:
            yield path, value


def _spelled(found: dict[str, Any], name: str) -> str:
    if name not in found:
        return NONE
    value = found[name]
    return f"{value:.6g}" if isinstance(value, float) else str(value)
