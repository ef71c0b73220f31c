"""Export of a log to the Chrome trace format, which Perfetto and chrome://tracing open."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.core.chrome.own import carried
from engine.core.events import Blob, Branch, Level, Mark, Move, Span, Told
from engine.core.log import Log
from engine.core.spans import NAME, Spans
from engine.core.writing import json_text, write_text

MICRO = 1e6  # the format counts microseconds


def chrome_trace(log: Log) -> dict[str, Any]:
    """The log as a Chrome trace object: spans, counters and instants, one row for each lane; and
    the log itself, for opening it here again."""
    rows: dict[str, int] = {}
    events = [entry for event in _each(log) for entry in _entries(event, rows)]
    names = [
        {"ph": "M", "pid": 0, "tid": row, "name": "thread_name", "args": {"name": lane}}
        for lane, row in rows.items()
    ]
    header = log.opened
    about = {"study": header.study, "clock": header.clock, "seed": header.seed} if header else {}
    shown = {"traceEvents": names + events, "displayTimeUnit": "ms", "otherData": about}
    return {**carried(log), **shown}


def _each(log: Log) -> Iterator[Any]:
    """The events, those that came as columns one by one."""
    facts = log.opened.facts if log.opened else {}
    for event in log:
        if type(event) is Blob and event.name == NAME:
            yield from Spans.told(event, log.blobs, facts).events()
        else:
            yield event


def _entries(event: Any, rows: dict[str, int]) -> Iterator[dict[str, Any]]:
    def row(lane: str) -> dict[str, Any]:
        return {"pid": 0, "tid": rows.setdefault(lane, len(rows)), "ts": event.time * MICRO}

    match event:
        case Span(lane=lane, name=name, start=start):
            args = {"flops": event.flops, "bytes": event.bytes, "tag": event.tag}
            took = (event.time - start) * MICRO
            yield {
                **row(lane),
                "ph": "X",
                "name": name,
                "ts": start * MICRO,
                "dur": took,
                "args": args,
            }
        case Move(source=source, target=target, start=start):
            took = (event.time - start) * MICRO
            entry = {**row(f"{source} to {target}"), "ph": "X", "name": event.tag or "move"}
            yield {**entry, "ts": start * MICRO, "dur": took, "args": {"bytes": event.bytes}}
        case Level(lane=lane, name=name, value=value):
            yield {**row(lane), "ph": "C", "name": f"{lane} {name}", "args": {name: value}}
        case Mark(lane=lane, name=name, text=text):
            yield {**row(lane), "ph": "i", "s": "t", "name": name, "args": {"text": text}}
        case Branch(thread=thread, state=state):
            yield {**row(thread), "ph": "i", "s": "t", "name": state, "args": {"why": event.why}}
        case Told(command=command):
            yield {**row("person"), "ph": "i", "s": "g", "name": "told", "args": command}


def save_chrome_trace(log: Log, path: str | Path) -> Path:
    """Write the trace as JSON and return its path."""
    path = Path(path)
    write_text(path, json_text(chrome_trace(log)), "the trace")
    return path
