"""Comparing runs: the same views under one another on one axis, what differs, and by how much."""

import html
from collections.abc import Sequence
from typing import Any

import panel as pn

from engine.core.errors import BadInput
from engine.core.run import Run
from widgets import theme
from widgets.stage.figures import NONE, compared, differing
from widgets.stage.stage import Stage

LETTERS = "ABCDEFGH"


class Compare:
    """Two or more runs, live or recorded. `titles` name them; else they are A, B, …"""

    def __init__(
        self, runs: Sequence[Run], names: Sequence[str], titles: Sequence[str] = ()
    ) -> None:
        if not 2 <= len(runs) <= len(LETTERS):
            raise BadInput(f"compare: {len(runs)} runs; give 2 to {len(LETTERS)}")
        self.runs = list(runs)
        own = [*titles, *("" for _ in runs)]
        self.titles = [f"{LETTERS[i]} {own[i]}".strip() for i in range(len(runs))]
        self.stage = Stage(names, tracks=len(runs))
        for track, run in enumerate(self.runs):
            self.stage.open(run, track)
        self.is_dark = False
        self._table = pn.pane.HTML("", sizing_mode="stretch_width", stylesheets=[TABLE], margin=0)
        self.refresh()

    def refresh(self) -> None:
        """Read the logs again: figures and differences as they are now."""
        logs = [run.log for run in self.runs]
        self._table.object = tables(self.titles, logs, self.is_dark)

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.is_dark = on
        self.stage.dark(on)
        self.refresh()

    def start(self) -> None:
        """Tick from now on, in the page this is called from."""
        self.stage.start()

    def __panel__(self) -> Any:
        self.stage.hosted()
        self.stage.tick()
        rows: list[Any] = [self._table]  # first: what differs, and by how much
        count = len(self.runs)
        for place, feed in enumerate(self.stage.feeds):
            faint = theme.scheme(self.is_dark).faint
            title = html.escape(self.titles[place % count])
            style = f"margin:0;font:600 13px {theme.FONT};color:{faint}"
            rows.append(pn.pane.HTML(f'<p style="{style}">{title}</p>', margin=0))
            rows.append(self.stage.card(feed))
        rows.append(self.stage.transport.bar)
        return pn.Column(*rows, sizing_mode="stretch_width", margin=0)


def tables(titles: Sequence[str], logs: Sequence[Any], dark: bool) -> str:
    """What differs and the figures, as escaped HTML."""
    paint = theme.scheme(dark)
    style = f"--ink:{paint.ink};--faint:{paint.faint};--line:{paint.line};--font:{theme.FONT}"
    heads = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    ratios = "".join(f"<th>{title[0]} / {titles[0][0]}</th>" for title in titles[1:])
    knobs = differing(logs)
    own = [knob for knob in knobs if NONE in knob[1]]  # of a part that the others have not
    first = [knob for knob in knobs if knob not in own] or own
    what = (
        f"<table><tr><th>what differs</th>{heads}</tr>{_settings(first)}</table>"
        if knobs
        else "<p>Nothing differs between their settings.</p>"
    )
    if own and first is not own:
        what += (
            f"<details><summary>{len(own)} more, of parts that not all have</summary>"
            f"<table>{_settings(own)}</table></details>"
        )
    top = f"<tr><th>measure</th>{heads}{ratios}</tr>"
    measured = compared(logs)
    apart = [row for row in measured if len(set(row[1])) > 1]
    figures = f"<table>{top}{_measured(apart)}</table>"
    if len(apart) < len(measured):
        alike = _measured([row for row in measured if row not in apart])
        figures += f"<details><summary>The same in all</summary><table>{alike}</table></details>"
    both = f"<div>{figures}</div><div>{what}</div>"
    return f'<div class="compared" style="{html.escape(style)}">{both}</div>'


def _settings(knobs: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    return "".join(_row(name, values) for name, values in knobs)


def _measured(rows: Sequence[tuple[str, tuple[str, ...], tuple[str, ...]]]) -> str:
    return "".join(_row(name, (*values, *ratios)) for name, values, ratios in rows)


def _row(name: str, values: Sequence[str]) -> str:
    cells = "".join(f"<td>{html.escape(value)}</td>" for value in values)
    return f"<tr><th>{html.escape(name)}</th>{cells}</tr>"


TABLE = """
.compared { display: flex; flex-wrap: wrap; gap: 12px 40px; align-items: flex-start;
  font: 13px var(--font); color: var(--ink); padding: 12px 0; }
table { border-collapse: collapse; }
summary { cursor: pointer; color: var(--faint); padding-top: 6px; }
th { font-weight: 400; text-align: left; color: var(--faint); }
tr:first-child th { font-weight: 600; color: var(--ink); }
tr:first-child th:not(:first-child), td { text-align: right; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); }
"""
