"""Comparing runs: the same views under one another on one axis, what differs, and by how much."""

import html
from collections.abc import Sequence
from typing import Any

import panel as pn

from engine.core.errors import BadInput
from engine.core.run import Run
from widgets import theme
from widgets.stage.figures import NONE, Row, compared, differing
from widgets.stage.interleaved import interleaved
from widgets.stage.noise import Noise, noises
from widgets.stage.stage import Stage
from widgets.stage.strip import STRIP, interval, strip

LETTERS = "ABCDEFGH"
READING = "<p role='status'>Reading what differs between them, and how sure it is …</p>"

TITLE = "var(--wb-faint, #747E89)"  # the page's own; elsewhere a grey that both themes can read


class Compare:
    """Two or more runs, live or recorded. `titles` name them; else they are A, B, …

    `lanes`: the requests' lanes of all runs in one view, in place of each view once for every run.
    `at_once`: read the logs here and now; else somebody calls `read` and `tell` later.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        names: Sequence[str],
        titles: Sequence[str] = (),
        lanes: bool = False,
        at_once: bool = True,
    ) -> None:
        if not 2 <= len(runs) <= len(LETTERS):
            raise BadInput(f"compare: {len(runs)} runs; give 2 to {len(LETTERS)}")
        self.runs = list(runs)
        own = [*titles, *("" for _ in runs)]
        self.titles = [f"{LETTERS[i]} {own[i]}".strip() for i in range(len(runs))]
        self.lanes = lanes
        if lanes:
            log, shown = interleaved([run.log for run in runs], LETTERS)
            self.stage = Stage([shown])
            self.stage.open(Run(log))
        else:
            self.stage = Stage(names, tracks=len(runs))
            for track, run in enumerate(self.runs):
                self.stage.open(run, track)
        self.is_dark = False
        self._text = READING  # of the logs, as escaped HTML
        self._table = pn.pane.HTML("", sizing_mode="stretch_width", stylesheets=[TABLE], margin=0)
        if at_once:
            self.read()
        self.tell()

    def read(self) -> None:
        """Read the logs as they are now: figures, differences, intervals. Two runs of 20,000
        requests take some seconds, so a page does it beside its loop."""
        logs = [run.log for run in self.runs]
        chance = [noises(logs[0], log) for log in logs[1:]]
        self._text = tables(self.titles, logs, chance)

    def tell(self, fault: str = "") -> None:
        """Show what was read, or in its place what went wrong, as escaped HTML."""
        paint = theme.scheme(self.is_dark)
        style = f"--ink:{paint.ink};--faint:{paint.faint};--line:{paint.line};--font:{theme.FONT}"
        names = " · ".join(f"<b>{t[0]}</b>{html.escape(t[1:])}" for t in self.titles)
        text = f"<p>{names}</p>{fault or self._text}"
        self._table.object = f'<div class="compared" style="{html.escape(style)}">{text}</div>'

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        self.is_dark = on
        self.stage.dark(on)
        self.tell()

    def start(self) -> None:
        """Tick from now on, in the page this is called from."""
        self.stage.start()

    def __panel__(self) -> Any:
        self.stage.hosted()
        self.stage.tick()
        rows: list[Any] = [self._table]  # first: what differs, and by how much
        count = len(self.runs)
        if self.lanes:
            return self._column([*rows, self.stage.card(self.stage.feeds[0])])
        for place, feed in enumerate(self.stage.feeds):
            title = html.escape(self.titles[place % count])
            style = f"margin:0;font:600 14px {theme.FONT};color:{TITLE}"
            rows.append(pn.pane.HTML(f'<p style="{style}">{title}</p>', margin=0))
            rows.append(self.stage.card(feed))
        return self._column(rows)

    def _column(self, rows: list[Any]) -> Any:
        return pn.Column(*rows, self.stage.transport.bar, sizing_mode="stretch_width", margin=0)


def tables(titles: Sequence[str], logs: Sequence[Any], chance: Sequence[dict[str, Noise]]) -> str:
    """The strip of differences, every figure and what differs in the settings, as escaped HTML."""
    measured = compared(logs)
    letters = [title[0] for title in titles]
    parts = strip(letters, logs, measured, chance)
    both = f"{_figures(letters, measured, chance)}{_what(letters, logs)}"
    return f"{parts}<div class='both'>{both}</div>"


def _figures(
    letters: Sequence[str], measured: Sequence[Row], chance: Sequence[dict[str, Noise]]
) -> str:
    """A table of every figure, with each ratio's interval; those alike in all are folded away."""
    heads = "".join(f"<th>{letter}</th>" for letter in letters)
    for letter in letters[1:]:
        heads += f"<th>{letter} / {letters[0]}</th><th>95% of it</th>"
    apart = [row for row in measured if len(set(row[1])) > 1]
    body = "".join(_measured(row, chance) for row in apart)
    text = f"<table><tr><th>measure</th>{heads}</tr>{body}</table>"
    if len(apart) < len(measured):
        alike = "".join(_row(row[0], row[1]) for row in measured if row not in apart)
        text += f"<details><summary>The same in all</summary><table>{alike}</table></details>"
    return f"<div>{text}</div>"


def _measured(row: Row, chance: Sequence[dict[str, Noise]]) -> str:
    name, values, ratios = row
    cells = list(values)
    for ratio, found in zip(ratios, chance, strict=True):
        cells += [ratio, interval(found.get(name))]
    return _row(name, cells)


def _what(letters: Sequence[str], logs: Sequence[Any]) -> str:
    """A table of the settings that differ; those of parts that not all have are folded away."""
    knobs = differing(logs)
    if not knobs:
        return "<div><p>Nothing differs between their settings.</p></div>"
    heads = "".join(f"<th>{letter}</th>" for letter in letters)
    own = [knob for knob in knobs if NONE in knob[1]]  # of a part that the others have not
    first = [knob for knob in knobs if knob not in own] or own
    text = f"<table><tr><th>what differs</th>{heads}</tr>{_settings(first)}</table>"
    if own and first is not own:
        text += (
            f"<details><summary>{len(own)} more, of parts that not all have</summary>"
            f"<table>{_settings(own)}</table></details>"
        )
    return f"<div>{text}</div>"


def _settings(knobs: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    return "".join(_row(name, values) for name, values in knobs)


def _row(name: str, values: Sequence[str]) -> str:
    cells = "".join(f"<td>{html.escape(value)}</td>" for value in values)
    return f"<tr><th>{html.escape(name)}</th>{cells}</tr>"


TABLE = (
    STRIP
    + """
.compared { font: 14px var(--font); color: var(--ink); padding: 12px 0; }
.compared p { margin: 0 0 8px; overflow-wrap: anywhere; }
.both { display: flex; flex-wrap: wrap; gap: 12px 40px; align-items: flex-start; }
table { border-collapse: collapse; }
summary { cursor: pointer; color: var(--faint); padding-top: 6px; }
th { font-weight: 400; text-align: left; color: var(--faint); }
tr:first-child th { font-weight: 600; color: var(--ink); }
tr:first-child th:not(:first-child), td { text-align: right; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); }
"""
)
