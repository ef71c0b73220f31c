"""What each step of a serving run did and how long it lasted, read from the run's log alone."""

from dataclasses import dataclass, field

import numpy as np

from engine.core.events import Branch, Span, Token
from engine.core.log import Log
from engine.core.measure import OVER


@dataclass(frozen=True, slots=True)
class Taken:
    """One step: B sequences bring `new_B` tokens each, the last of which sees `context_B`.

    `seconds`: from its beginning to the next one's, since what lies between (the scheduler, the
    tokens' text, events) is part of what a step costs.
    """

    new_B: np.ndarray
    context_B: np.ndarray
    rows: int  # tokens sampled
    seconds: float


@dataclass(slots=True)
class _Open:
    """A step whose tokens are still coming in."""

    start: float
    stop: float
    prefills: dict[str, tuple[int, int]]  # thread -> positions computed
    decodes: list[int] = field(default_factory=list)  # contexts
    sampled: int = 0
    idle: bool = False  # nothing was left to do after it


def steps_taken(log: Log) -> list[Taken]:
    """Every step but the last, which nothing follows to say when it was over."""
    found = _steps(log)
    gaps = [b.start - a.stop for a, b in zip(found, found[1:], strict=False) if not a.idle]
    usual = float(np.median(gaps)) if gaps else 0.0
    taken = []
    for one, after in zip(found, found[1:], strict=False):
        # After the last request in sight the engine waits for the next: that is no work.
        gap = usual if one.idle else after.start - one.stop
        ends = [stop for _, stop in one.prefills.values()]
        new = [1] * len(one.decodes) + [stop - start for start, stop in one.prefills.values()]
        contexts = np.array(one.decodes + ends, np.int64)
        seconds = one.stop - one.start + gap
        taken.append(Taken(np.array(new, np.int64), contexts, one.sampled, seconds))
    return taken


def _steps(log: Log) -> list[_Open]:
    known: dict[str, int] = {}  # thread -> tokens it has
    live: set[str] = set()
    prefills: dict[str, tuple[int, int]] = {}
    found: list[_Open] = []
    for event in log:
        if isinstance(event, Span) and event.name == "prefill":
            start, stop = map(int, event.tag.split(":"))
            prefills[event.lane] = start, stop
            known[event.lane] = max(known.get(event.lane, 0), stop)
        elif isinstance(event, Span) and event.name == "step":
            found.append(_Open(event.start, event.stop, prefills))
            prefills = {}
        elif isinstance(event, Token) and found:
            step = found[-1]
            step.sampled += 1
            if event.thread not in step.prefills:
                step.decodes.append(known.get(event.thread, 1))
            known[event.thread] = known.get(event.thread, 0) + 1
        elif isinstance(event, Branch):
            if event.state == "queued" and event.parent:
                known[event.thread] = known.get(event.parent, 0)
            if event.state not in OVER:
                live.add(event.thread)
                continue
            live.discard(event.thread)
            if found and not live:
                found[-1].idle = True
    return found
