"""The table of an app's runs: study, what differs from its start, length, clock, three figures, its
course as a line, tags, and boxes for those to compare."""

import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from html import escape

import numpy as np

from engine.core.config import Config, to_dict
from engine.core.errors import BadInput
from engine.core.events import Level, Token
from engine.core.run import Run
from widgets.stage.figures import flat, measures
from widgets.theme import figure
from workbench.catalogue import entry, study
from workbench.pages.frame.addresses import query_of
from workbench.pages.shelf.shelf import Shelf, study_of
from workbench.summary import rows

CHIPS = 4  # differing knobs shown
FIGURES = 3
# Of requests, the ones people ask for; of anything else, what its levels say.
SERVED = ("tokens per second", "time to first token, p50", "time per output token, p50")
TOLD = ("time", "spans", "events", "ended")  # have columns of their own
RUNS = "runs"  # how an address of the compare page calls those that were marked
HEAD = ("", "run", "study", "what differs", "length", "clock", "figures", "course", "kept", "")
PIECES = 40  # of a run's time, in the line of its course
WIDE, HIGH = 96, 26  # pixels of that line
CSS = """
.runs { border-collapse: collapse; font-size: 12px; width: 100%; }
.runs th { text-align: left; color: var(--wb-faint); font-weight: 600; padding: 4px 16px 4px 0; }
.runs td { padding: 6px 16px 6px 0; border-top: 1px solid var(--wb-line); vertical-align: top; }
.runs td:nth-child(2) { overflow-wrap: anywhere; min-width: 110px; }
.runs td:nth-child(7), .runs td:nth-child(9) { white-space: nowrap; }
@media (max-width: 1000px) { .runs tr > :nth-child(8) { display: none; }
  .runs th, .runs td { padding-right: 9px; } .runs td:nth-child(5) { white-space: nowrap; }
  .runs td:nth-child(7), .runs td:nth-child(9) { white-space: normal; min-width: 72px; }
  .runs td:nth-child(7) { min-width: 180px; } }
.runs tr[aria-current] td:nth-child(2) { font-weight: 600; }
.runs input { width: 16px; height: 16px; margin: 2px 0 0; accent-color: var(--wb-accent); }
.runs input:focus-visible { outline: 2px solid var(--wb-accent); outline-offset: 1px; }
.marked { font: inherit; color: var(--wb-accent); background: none; cursor: pointer;
  border: 1px solid var(--wb-line); border-radius: 6px; padding: 4px 12px; margin: 8px 10px 0 0; }
.tag { margin: 2px 6px 0 0; display: inline-block; font-weight: 400; }
.chip { display: inline-block; border: 1px solid var(--wb-line); border-radius: 6px;
  padding: 0 6px; margin: 0 4px 3px 0; white-space: nowrap; max-width: 260px; overflow: hidden;
  text-overflow: ellipsis; vertical-align: bottom; }
"""


def runs_table(
    shelf: Shelf, chosen: str | None, to: Callable[..., str], tag: str = "", dark: bool = False
) -> str:
    """The runs kept, the newest first, as an escaped HTML table; "" where there are none.

    `chosen` is the one shown beneath; `to` gives the address of a place and a query; `tag`: those
    that have it alone.
    """
    listed = [
        _row(name, run, shelf, chosen, to)
        for name, run in reversed(shelf.runs.items())
        if not tag or tag in shelf.tags.get(name, ())
    ]
    if not shelf.runs:
        return ""
    cells = "".join(f"<th scope='col'>{name}</th>" for name in HEAD)
    body = "".join(listed)
    table = f"<table class='runs'><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    theme = '<input type="hidden" name="theme" value="dark">' if dark else ""
    marked = '<button class="marked" type="submit">Compare those marked</button>'
    only = f'Tagged {escape(tag)} alone. <a href="{escape(to("runs"))}">Show all</a>' if tag else ""
    few = marked if len(shelf.runs) > 1 else ""
    return f'<form action="./compare" method="get">{theme}{table}{few}{only}</form>'


def _row(name: str, run: Run, shelf: Shelf, chosen: str | None, to: Callable[..., str]) -> str:
    when = shelf.when.get(name, 0.0)
    header, slug = run.log.opened, study_of(run)
    clock = {"wall": "measured", "virtual": "modelled"}.get(header.clock if header else "", "–")
    here = name == chosen
    other = "" if here or not chosen else (
        f'<a href="{escape(to("compare", a=chosen, b=name))}">compare</a>'
    )  # fmt: skip
    tags = "".join(
        f'<a class="tag" href="{escape(to("runs", tag=tag))}">#{escape(tag)}</a>'
        for tag in shelf.tags.get(name, ())
    )
    told = (
        f'<input type="checkbox" name="{RUNS}" value="{escape(name)}" '
        f'aria-label="compare {escape(name)}">',
        f'<a href="{escape(to("runs", name=name))}">{escape(name)}</a>'
        + (f"<br>{tags}" if tags else ""),
        escape(title(slug)),
        "".join(f'<span class="chip">{escape(text)}</span>' for text in differing(slug, run)),
        figure(run.log.duration, "s") + ("" if run.state == "closed" else ", running"),
        clock,
        "<br>".join(escape(text) for text in headline(run)),
        sparkline(run),
        time.strftime("%d %b %H:%M", time.localtime(when)) if when else "–",
        other,
    )
    return (
        f"<tr{' aria-current=true' if here else ''}>{''.join(f'<td>{t}</td>' for t in told)}</tr>"
    )


def course(run: Run) -> tuple[str, np.ndarray]:
    """What the line of an ended run shows, and its values: tokens in each piece of its time, else
    the level told most often; nothing for a run without either."""
    log, end = run.log, run.log.duration
    if run.state != "closed" or end <= 0:
        return "", np.zeros(0)
    tokens = [event.time for event in log.of(Token)]
    if tokens:
        return "tokens over its time", np.histogram(tokens, PIECES, (0.0, end))[0].astype(float)
    levels = log.of(Level)
    if not levels:
        return "", np.zeros(0)
    (lane, name), _ = Counter((level.lane, level.name) for level in levels).most_common(1)[0]
    mine = [level for level in levels if (level.lane, level.name) == (lane, name)]
    at = np.interp(np.linspace(0.0, end, PIECES), [e.time for e in mine], [e.value for e in mine])
    return f"{name} of {lane} over its time", at


def sparkline(run: Run) -> str:
    """The course of a run as a line without axes, as SVG."""
    said, values = course(run)
    values = np.where(np.isfinite(values), values, 0.0)
    if len(values) < 2 or values.max() == values.min():
        return ""
    low, high = min(0.0, values.min()), values.max()
    across = np.linspace(1, WIDE - 1, len(values))
    down = HIGH - 2 - (HIGH - 4) * (values - low) / (high - low)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, down, strict=True))
    return (
        f'<svg width="{WIDE}" height="{HIGH}" role="img" aria-label="{escape(said)}">'
        f"<title>{escape(said)}</title>"
        f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>'
    )


def title(slug: str) -> str:
    """What a study is called; of a run of none, that it is a trace."""
    try:
        return entry(slug).title if slug else "a trace"
    except BadInput:
        return slug


def differing(slug: str, run: Run) -> list[str]:
    """Knobs that differ from the study's own setting, `path = value`; the first `CHIPS` of them."""
    start, header = _start(slug), run.log.opened
    if start is None:
        return []
    if type(run.config) is type(start):
        knobs = [f"{path} = {value}" for path, value in query_of(start, run.config).items()]
    else:  # of a file, that may be of an older version: what its header says
        own, theirs = dict(flat(to_dict(start))), dict(flat(header.config if header else {}))
        apart = {path: value for path, value in theirs.items() if path in own}
        knobs = [
            f"{path.removesuffix('.kind')} = {value}"
            for path, value in apart.items()
            if (list(own[path]) if isinstance(own[path], tuple) else own[path]) != value
        ]
    more = [f"and {len(knobs) - CHIPS} more"] if len(knobs) > CHIPS else []
    return [*knobs[:CHIPS], *more]


def headline(run: Run) -> list[str]:
    """The first figures of a run that ended, with their names."""
    if run.state != "closed":
        return []
    served = measures(run.log)
    told = [f"{name}: {figure(*served[name])}" for name in SERVED if name in served]
    own = [f"{name}: {value}" for name, value in rows(run.log) if name not in TOLD]
    return (told or own)[:FIGURES]


@cache
def _start(slug: str) -> Config | None:
    try:
        return study(slug).config
    except BadInput:
        return None
