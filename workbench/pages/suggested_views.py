"""Which views can say something about a log: the study's own, else those its events feed."""

from engine.core.errors import BadInput
from engine.core.events import Blob, Branch, Level, Page, Span, Token
from engine.core.log import Log
from engine.core.measure import BUCKETS
from engine.core.plot import PREFIX
from engine.core.spans import NAME as SPANS
from widgets.view import views
from widgets.views.unmasking.fold import GRID
from workbench.catalogue import study

FEEDS = {  # view -> a kind of event it lives on
    "page_map": Page,
    "request_lanes": Branch,
    "token_river": Token,
    "levels": Level,
    "latency": Token,
}
MOST = 4
MODELLED = ("request_lanes", "latency", "levels", "page_map")
PROFILED = ("page_map", "token_river", "request_lanes", "roofline")


def suggested_views(log: Log) -> tuple[str, ...]:
    """At most four names of views."""
    header = log.opened
    if header is not None and header.study:
        try:
            return study(header.study).views[:MOST]
        except BadInput:
            pass  # a run of a study this workbench does not have
    kinds = {type(event) for event in log}
    if any(type(event) is Blob and event.name == SPANS for event in log):  # another tool's trace
        return ("schedule", "roofline", *(("levels",) if Level in kinds else ()))
    if _is_profiled(log):  # then it tells more than the levels do
        return tuple(name for name in PROFILED if name == "roofline" or FEEDS[name] in kinds)
    found = [name for name, kind in FEEDS.items() if kind in kinds and name in views()]
    if header is not None and header.clock == "virtual" and Branch in kinds:
        # Tokens have no text: what is asked is how long requests waited.
        found = [name for name in MODELLED if name in found]
    if _has_threads(log):  # their lanes carry the text, too
        found = ["threads", *(name for name in found if name != "token_river")]
    blobs = [event.name for event in log if type(event) is Blob]
    if any(name.startswith(BUCKETS) for name in blobs):  # a server that was watched
        found.append("latency")
    if any(name.startswith(GRID) for name in blobs):
        found.insert(0, "unmasking")
    if any(name.startswith(PREFIX) for name in blobs):
        found.insert(0, "curves")
    if Span in kinds and (not found or _has_passes(log)):
        found.append("schedule")
    return tuple(found[:MOST])


def _has_passes(log: Log) -> bool:
    """Whether ranks tell their forwards and backwards."""
    return any(type(event) is Span and event.name in ("F", "B") for event in log)


def _has_threads(log: Log) -> bool:
    """Whether threads fork, or see one another's blocks."""
    return any(
        (type(event) is Branch and event.parent != "")
        or (type(event) is Level and event.name.startswith("sees/"))
        for event in log
    )


def _is_profiled(log: Log) -> bool:
    """Whether operations stand in it with their work, not whole steps alone."""
    spans = (event for event in log if isinstance(event, Span))
    return any(span.flops > 0 and span.name != "step" for span in spans)
