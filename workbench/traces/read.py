"""A Chrome trace as a run: what another tool recorded, in the schedule and roofline views.

In comes a trace of PyTorch's profiler, vLLM or any tool that writes the format; out comes a log
like any other, with the data sheet's roofs where the trace names a device we know.
"""

from collections.abc import Sequence
from heapq import merge
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from engine.core.chrome import launches
from engine.core.chrome.breakdown import DEVICES
from engine.core.chrome.device_trace import ZERO
from engine.core.chrome.own import own_run
from engine.core.chrome.ranks import numbered, offsets, straggler, together, waiting
from engine.core.chrome.read import Trace, read_chrome
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Closed, Level, Mark, Opened
from engine.core.file import load
from engine.core.log import Log
from engine.core.spans import NAME
from engine.hardware.profiled import PROFILED, sheet_named
from engine.hardware.roofs import roofs_of

SUFFIXES = (".json", ".json.gz", ".gz", ".sqlite")
MOST_RANKS = 64  # of one job, opened together


def open_log(path: str | Path) -> Log:
    """The log of a run file or of a Chrome trace, told apart by name. Raises BadInput."""
    path = Path(path)
    return log_of(path) if path.name.lower().endswith(SUFFIXES) else load(path)


def log_of(path: Path) -> Log:
    """Read a Chrome trace; one exported here is the run it was. Raises BadInput for none."""
    own = own_run(path)
    if own is not None:
        return own
    return _told(read_chrome(path, PROFILED), path.name)


def log_of_ranks(paths: Sequence[Path]) -> Log:
    """Traces of several ranks of one job as one run: on one axis, the straggler named in a mark.

    Raises BadInput for what is no Chrome trace, or more ranks than `MOST_RANKS`.
    """
    if not 2 <= len(paths) <= MOST_RANKS:
        raise BadInput(f"{len(paths)} traces of one job; give 2 to {MOST_RANKS}, one a rank")
    traces = [read_chrome(path, PROFILED) for path in paths]
    ranks, shift = numbered(traces), offsets(traces)
    order = sorted(range(len(traces)), key=ranks.__getitem__)
    traces, ranks, shift = [traces[i] for i in order], [ranks[i] for i in order], shift[order]
    said = straggler(waiting(traces, shift), ranks)
    if ranks != (told := [trace.rank for trace in traces]) and max(told) >= 0:
        said += "; two traces give the same rank, or not all give one: they count as given"
    return _told(together(traces, ranks, shift), paths[order[0]].name, said)


def _told(trace: Trace, name: str, said: str = "") -> Log:
    """A trace as events; `said` of its ranks is told with the plan."""
    log = Log()
    log.emit(Opened(0.0, {"trace": name}, machine=_machine(trace), facts=_facts(trace)))
    levels = (Level(*row) for row in trace.levels)
    marks = (Mark(*row) for row in trace.marks)
    others: list[AnyEvent] = list(merge(levels, marks, key=attrgetter("time")))
    last = max([log.duration, *(float(t) for t in trace.spans.stop[-1:])])
    before = [event for event in others if event.time <= last]
    for event in before:
        log.emit(event)
    trace.spans.tell(log)
    launches.tell(log, trace.launched_by)
    if said:
        log.emit(Mark(log.duration, "plan", "ranks", said))
    for event in chain(others[len(before) :], _notes(trace, max(last, log.duration))):
        log.emit(event)
    log.emit(Closed(log.duration, "finished"))
    return log


def _notes(trace: Trace, last: float) -> list[AnyEvent]:
    last = max([last, *(rows[-1][0] for rows in (trace.levels, trace.marks) if rows)])
    return [Mark(last, f"trace {n}", "left out", note) for n, note in enumerate(trace.notes)]


def _machine(trace: Trace) -> dict[str, Any]:
    return {"devices": trace.devices} if trace.devices else {}


def _facts(trace: Trace) -> dict[str, Any]:
    facts: dict[str, Any] = {NAME: trace.spans.words()}
    if any(trace.device_of):
        told = {"categories": trace.categories, "lanes": trace.device_of, ZERO: trace.zero}
        facts[DEVICES] = told
    found = next(filter(None, map(sheet_named, dict.fromkeys(trace.devices))), None)
    if found is not None:
        facts["roofs"] = roofs_of(found)
    return facts
