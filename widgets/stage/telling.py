"""Telling moments: where the cursor of a run that is over rests, when the run's end shows nothing.

At its end a cache has given its pages back and a fleet has no requests. Where such a view stands
first the page rests at its fullest; where it stands further down, as late as that view allows.
"""

from bisect import bisect_left
from collections.abc import Sequence

from engine.core.events import Page
from engine.core.log import Log
from engine.core.measure import fullest

WHOLE = ("levels",)  # views that show a whole run wherever the cursor stands
CACHE = "page_map"
EMPTIES = (CACHE, "fleet")  # views with nothing in them at a run's end
JOINS = ("take", "hit", "share", "copy", "swap_in")  # what a page gets a holder by
READERS = ("threads",)  # views of who reads whom now: nobody does once all pages are given back
LEAVES = ("drop", "swap_out")


def telling(log: Log, views: Sequence[str]) -> float | None:
    """Seconds since the run opened; None where the run's end tells as much as any moment."""
    first = next((view for view in views if view not in WHOLE), "")
    if first in EMPTIES:
        moment = fullest(log, "pages_used")
        return fullest(log, "running") if moment is None else moment
    if CACHE not in views:
        return None
    return before_given_back(log, cached=first not in READERS)


def before_given_back(log: Log, cached: bool = True) -> float | None:
    """The last moment before the cache's pages were given back for good, of a run whose cache at
    its end holds less than half of what it held at most; None of any other run. `cached`: pages
    that nobody holds but that are kept for a prefix count, too."""
    held: dict[int, set[str]] = {}
    kept: set[int] = set()
    most = now = 0
    grows, back = False, None  # since the last page was taken: when the first was left
    for event in log.of(Page):
        if event.kind or event.page < 0:
            continue
        owners = held.setdefault(event.page, set())
        before = bool(owners)
        if event.state in JOINS:
            owners.add(event.owner)
            grows = True
        elif event.state == "index":
            kept.add(event.page)
        elif event.state in LEAVES or event.state == "free":
            if grows:
                grows, back = False, event.time
            if event.state == "free":
                owners.clear()
                kept.discard(event.page)
            owners.discard(event.owner)
        now += bool(owners) - before
        most = max(most, now)
    left = len((kept if cached else set()) | {page for page, owners in held.items() if owners})
    if back is None or 2 * left >= most:
        return None
    place = bisect_left(log.events, back, key=lambda event: event.time)
    return log.events[place - 1].time if place else None
