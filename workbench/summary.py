"""A run's figures: plain numbers from its log, for the command line, the app and JSON."""

import re
from collections import Counter
from dataclasses import asdict
from typing import Any

from engine.core.events import Blob, Branch, Level, Mark, Token
from engine.core.log import Log
from engine.core.measure import serving
from engine.core.spans import NAME as SPANS
from widgets.theme import figure

LEVELS = 12  # quantities told, at most
LANES = 4  # lanes told one by one
HIDDEN = "sees/"  # levels that stand for an edge of a picture, not for a quantity


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
        found["rejected"] = rejected(log)
        found["refused"] = refused(log)
    return found


def rejected(log: Log) -> list[dict[str, Any]]:
    """Why requests were rejected: `reason` as the first of its kind was told, and `count`.

    Reasons that differ in their numbers alone are of one kind; the commonest comes first.
    """
    return _kinds([event.why for event in log.of(Branch) if event.state == "rejected"])


def refused(log: Log) -> list[dict[str, Any]]:
    """What was asked of a run (a fork, a join, a word) and not done, and why; as in `rejected`."""
    return _kinds([mark.text for mark in log.of(Mark) if mark.name == "refuse"])


def _kinds(told: list[str]) -> list[dict[str, Any]]:
    kinds = [re.sub(r"\d+", "#", text) for text in told]
    first = dict(zip(reversed(kinds), reversed(told), strict=True))
    return [{"reason": first[k], "count": n} for k, n in Counter(kinds).most_common()]


def rows(log: Log) -> list[tuple[str, str]]:
    """The figures a person reads first, as name and value with its unit."""
    facts = summary(log)
    clock = {"wall": "measured", "virtual": "modelled"}.get(facts["clock"], "")
    found = [
        ("time", f"{figure(facts['seconds'], 's')} ({clock})" if clock else "no header"),
        ("events", figure(sum(facts["events"].values()))),
        ("ended", facts["closed"] or "still running"),
    ]
    spans = sum(blob.shape[1] for blob in log.of(Blob) if _is_table(blob))
    if spans:  # another tool's trace: they lie beside the log
        found.insert(2, ("spans", figure(spans)))
    if "serving" in facts:
        found += _served(facts["serving"], facts["rejected"])
        if facts["refused"]:
            found.append(("refused", _why(facts["refused"])))
    if not facts.get("serving", {}).get("prefilled"):  # no requests: what its levels say
        found += _levels(log)
    return found


def _served(served: dict[str, Any], refused: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """What requests got; without what says nothing where no prompt was computed."""
    found = [
        ("requests finished", f"{served['finished']} of {served['requests']}"),
        *_rejections(refused, served["requests"]),
        ("tokens", figure(served["tokens"])),
        ("tokens per second", figure(served["tokens_per_second"])),
    ]
    if served["prefilled"]:
        found.insert(-1, ("prompt tokens computed", figure(served["prefilled"])))
        found.append(("preemptions", figure(served["preemptions"])))
    for name in ("time_to_first_token", "time_per_output_token", "end_to_end"):
        if served[name]["count"]:
            found.append((name.replace("_", " "), _quantiles(served[name])))
    return found


def _levels(log: Log) -> list[tuple[str, str]]:
    """A row for each quantity: the most there was of bytes, the last of anything else."""
    lanes: dict[str, dict[str, float]] = {}
    for level in log.of(Level):
        if level.name.startswith(HIDDEN):
            continue
        values = lanes.setdefault(level.name, {})
        is_bytes = _unit(level.name) == "B"
        values[level.lane] = (
            max(level.value, values.get(level.lane, 0)) if is_bytes else level.value
        )
    return [(name.replace("/", ", "), _told(name, lanes[name])) for name in list(lanes)[:LEVELS]]


def _told(name: str, values: dict[str, float]) -> str:
    """The values of a quantity by lane; where there are many lanes, from the least to the most."""
    shown = {lane: figure(value, _unit(name)) for lane, value in values.items()}
    if len(shown) == 1:
        return next(iter(shown.values()))
    if len(shown) <= LANES:
        return ", ".join(f"{lane} {text}" for lane, text in shown.items())
    least, most = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    among = f"in {len(shown)} lanes"
    if shown[least] == shown[most]:
        return f"{shown[least]} {among}"
    return f"{shown[least]} ({least}) to {shown[most]} ({most}) {among}"


def _unit(name: str) -> str:
    if "bytes" in name or name.startswith("memory/"):
        return "B"
    return "s" if "seconds" in name else ""


def _rejections(found: list[dict[str, Any]], requests: int) -> list[tuple[str, str]]:
    """One row where any were rejected: how many and why."""
    if not found:
        return []
    count = sum(row["count"] for row in found)
    return [("requests rejected", f"{count} of {requests}: {_why(found)}")]


def _why(found: list[dict[str, Any]]) -> str:
    """Each kind's first reason, and how many were like it."""
    return "; ".join(
        row["reason"] + (f" (and {row['count'] - 1} like it)" if row["count"] > 1 else "")
        for row in found
    )


def _quantiles(latency: dict[str, Any]) -> str:
    return ", ".join(f"{name} {figure(latency[name], 's')}" for name in ("p50", "p90", "p99"))


def _is_table(blob: Blob) -> bool:
    return blob.name == SPANS and len(blob.shape) == 2
