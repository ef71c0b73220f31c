"""The table of an app's runs: study, what differs from its start, length, clock, three figures."""

import time
from collections.abc import Callable
from functools import cache
from html import escape

from engine.core.config import Config
from engine.core.errors import BadInput
from engine.core.run import Run
from widgets.stage.figures import measures
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
HEAD = ("run", "study", "what differs", "length", "clock", "figures", "kept", "")
CSS = """
.runs { border-collapse: collapse; font-size: 13px; width: 100%; }
.runs th { text-align: left; color: var(--wb-faint); font-weight: 600; padding: 4px 16px 4px 0; }
.runs td { padding: 6px 16px 6px 0; border-top: 1px solid var(--wb-line); vertical-align: top; }
.runs tr[aria-current] td:first-child { font-weight: 600; }
.chip { display: inline-block; border: 1px solid var(--wb-line); border-radius: 6px;
  padding: 0 6px; margin: 0 4px 3px 0; white-space: nowrap; max-width: 260px; overflow: hidden;
  text-overflow: ellipsis; vertical-align: bottom; }
"""


def runs_table(shelf: Shelf, chosen: str | None, to: Callable[..., str]) -> str:
    """The runs kept, the newest first, as an escaped HTML table; "" where there are none.

    `chosen` is the one shown beneath; `to` gives the address of a place and a query.
    """
    listed = [
        _row(name, run, shelf.when.get(name, 0.0), chosen, to)
        for name, run in reversed(shelf.runs.items())
    ]
    if not listed:
        return ""
    cells = "".join(f"<th scope='col'>{name}</th>" for name in HEAD)
    body = "".join(listed)
    return f"<table class='runs'><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _row(name: str, run: Run, when: float, chosen: str | None, to: Callable[..., str]) -> str:
    header, slug = run.log.opened, study_of(run)
    clock = {"wall": "measured", "virtual": "modelled"}.get(header.clock if header else "", "–")
    here = name == chosen
    other = "" if here or not chosen else (
        f'<a href="{escape(to("compare", a=chosen, b=name))}">compare</a>'
    )  # fmt: skip
    told = (
        f'<a href="{escape(to("runs", name=name))}">{escape(name)}</a>',
        escape(title(slug)),
        "".join(f'<span class="chip">{escape(text)}</span>' for text in differing(slug, run)),
        figure(run.log.duration, "s") + ("" if run.state == "closed" else ", running"),
        clock,
        "<br>".join(escape(text) for text in headline(run)),
        time.strftime("%d %b %H:%M", time.localtime(when)) if when else "–",
        other,
    )
    return (
        f"<tr{' aria-current=true' if here else ''}>{''.join(f'<td>{t}</td>' for t in told)}</tr>"
    )


def title(slug: str) -> str:
    """What a study is called; of a run of none, that it is a trace."""
    try:
        return entry(slug).title if slug else "a trace"
    except BadInput:
        return slug


def differing(slug: str, run: Run) -> list[str]:
    """Knobs that differ from the study's own setting, `path = value`; the first `CHIPS` of them."""
    start = _start(slug)
    if start is None or type(run.config) is not type(start):
        return []
    knobs = [f"{path} = {value}" for path, value in query_of(start, run.config).items()]
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
