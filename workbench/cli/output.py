"""Printing for the command line: aligned tables, JSON, progress on stderr."""

import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.core.errors import BadInput
from engine.core.names import counted
from engine.core.run import Progress, Run
from engine.core.writing import json_text

if TYPE_CHECKING:
    from engine.inference.workloads.traces.read import Trace

PATIENCE = 2.0  # seconds of silence before anything is said
EVERY = 5.0  # seconds between lines where there is no terminal to rewrite one on
LOOK = 0.1
HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
STOPPING = 0.5  # seconds that a stopped run has to come to its next step; the command ends then


def visible(text: str) -> str:
    """The text with what a terminal would obey written out: controls, and what turns around the
    direction of reading. Line ends and tabs stay."""
    return HIDDEN.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def print_json(value: Any) -> None:
    """One JSON document on stdout; numbers JSON cannot hold become null, and what a terminal would
    obey is escaped."""
    text = json_text(_plain(value), ensure_ascii=False, indent=2)
    print(HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


def say_left_out(trace: "Trace") -> None:
    """How many of a trace's lines could not be read, where such are left out."""
    if trace.skipped:
        say(f"{trace.path}: left out {counted(trace.skipped, 'line')} that cannot be read")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if hasattr(value, "item"):  # numpy scalars
        return _plain(value.item())
    return str(value)


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns aligned left, the last one wrapped to the terminal's width."""
    head, *rows = [[visible(str(cell)) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head) - 1)]
    indent = sum(widths) + 2 * len(widths)
    room = max(24, shutil.get_terminal_size((100, 24)).columns - indent)
    for row in [head, *rows]:
        lines = textwrap.wrap(row[-1], room) or [""]
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, lines[0]]).rstrip())
        for line in lines[1:]:
            print(" " * indent + line)


def seed(text: str) -> int:
    """An argument that is a seed; run files keep it in 64 bits."""
    value = int(text)
    if not -(2**63) <= value < 2**63:
        raise ValueError(text)
    return value


def seconds(text: str) -> float:
    """An argument that bounds something: of nought or fewer nothing could be done, and what is no
    number bounds nothing."""
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


def check_place(path: str | None) -> None:
    """Raises BadInput where no file can be made at `path`, before the work it would hold."""
    if path is None:
        return
    place = Path(path)
    if not path or place.is_dir():
        raise BadInput(f"{path!r}: cannot write a file there; give a file's name")
    if not place.parent.is_dir():
        raise BadInput(f"{path}: cannot write, no folder {str(place.parent)!r}; make it first")


def folder(path: str) -> Path:
    """The folder at `path`. Raises BadInput for an empty name, which would be the present one."""
    if not path.strip():
        raise BadInput("--out '': give a folder's name; the present one is .")
    return Path(path).expanduser()


def say(what: object) -> None:
    """A line of progress, a text or an event, on stderr so that stdout stays for results."""
    _tell(f"{visible(str(what))}\n")


def _tell(text: str) -> None:
    """On stderr as it is; where nobody reads it any more, a terminal that has closed or a pipe's
    other end, the work goes on without a word."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def follow(run: Run, patience: float = STOPPING) -> Run:
    """Wait for `run` and say how far it is; raises what its driver raised. Ctrl-C stops it, which
    may take it `patience` seconds."""
    assert run.live is not None and run.thread is not None
    # Not the thread's join, see Run.wait.
    terminal, began, told = sys.stderr.isatty(), time.monotonic(), ""
    last = began + PATIENCE - EVERY
    try:
        while not run.ended.wait(LOOK):
            now = time.monotonic()
            line = sentence(run.live.progress, now)
            if now - began < PATIENCE or not line or line == told:
                continue
            if terminal:
                _tell(f"\r{line:<{len(told)}}")
                told = line
            elif now - last >= EVERY:
                say(line)
                told, last = line, now
    except KeyboardInterrupt:
        run.stop()
        run.ended.wait(patience)
        raise
    finally:
        if terminal and told:
            _tell(f"\r{'':<{len(told)}}\r")
    return run.wait()


def sentence(progress: Progress, now: float) -> str:
    """What is done, how far it is and how long it takes; "" before the run has said anything."""
    if not progress.what:
        return ""
    left = progress.left()
    if left is None:
        return f"{progress.what} … {now - progress.since:.0f} s"
    share = f"{progress.done:,.0f} of {progress.total:,.0f}"
    return f"{progress.what}: {share}, about {left:.0f} s left"
