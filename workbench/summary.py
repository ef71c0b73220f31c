"""A run's figures: plain numbers from its log, for the command line, the app and JSON."""

from collections import Counter
from dataclasses import asdict
from typing import Any

from engine.core.events import Branch, Level, Token
from engine.core.log import Log
from engine.core.measure import serving
from widgets.theme import figure


def summary(log: Log) -> dict[str, Any]:
    """Events by kind, duration, how it closed, peaks of levels and, of requests, what they got."""
    header, footer = log.opened, log.closed
    peaks: dict[str, float] = {}
    for level in log.of(Level):
        name = f"{level.lane}.{level.name}"
        peaks[name] = max(level.value, peaks.get(name, level.value))
    found: dict[str, Any] = {
        "events": dict(Counter(type(event).__name__.lower() for event in log)),
        "seconds": log.duration,
        "clock": header.clock if header else "",
        "closed": footer.reason if footer else "",
        "peaks": peaks,
    }
    if any(isinstance(event, (Branch, Token)) for event in log):
        found["serving"] = asdict(serving(log))
    return found


def rows(log: Log) -> list[tuple[str, str]]:
    """The figures a person reads first, as name and value with its unit."""
    facts = summary(log)
    clock = {"wall": "measured", "virtual": "modelled"}.get(facts["clock"], "")
    found = [
        ("time", f"{figure(facts['seconds'], 's')} ({clock})" if clock else "no header"),
        ("events", figure(sum(facts["events"].values()))),
        ("ended", facts["closed"] or "still running"),
    ]
    served = facts.get("serving")
    if served:
        found += [
            ("requests finished", f"{served['finished']} of {served['requests']}"),
            ("tokens", figure(served["tokens"])),
            ("prompt tokens computed", figure(served["prefilled"])),
            ("tokens per second", figure(served["tokens_per_second"])),
            ("preemptions", figure(served["preemptions"])),
        ]
        for name in ("time_to_first_token", "time_per_output_token", "end_to_end"):
            found.append((name.replace("_", " "), _quantiles(served[name])))
    return found


def _quantiles(latency: dict[str, Any]) -> str:
    if not latency["count"]:
        return "–"
    return ", ".join(f"{name} {figure(latency[name], 's')}" for name in ("p50", "p90", "p99"))
