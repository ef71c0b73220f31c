"""Exports of a run: a chart as SVG, a page that replays without a server, the run file, the trace.

The page holds everything it needs (its policy forbids it any request) and escapes all that comes
from the log.
"""

import html
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.log import Log
from widgets import theme
from widgets.canvas import CanvasDrawing, static_view
from widgets.charts import ChartDrawing
from widgets.figures import flat, measures
from widgets.svg import svg
from widgets.transport import script
from widgets.view import View, view

WIDTH = 1200  # pixels a chart is drawn in; the page scales it
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
HEADLINES = 8  # figures in the head of the page


def chart(
    log: Log, name: str, *, width: int = WIDTH, dark: bool = False, time: float | None = None
) -> str:
    """A chart view of `log` as SVG text, its figures those at `time` (the end, unless given).

    Raises BadInput for a view that is drawn on a canvas.
    """
    return _chart(log, view(name), width, dark, log.duration if time is None else time, time)


def _chart(
    log: Log, wanted: View, width: int, dark: bool, time: float, cursor: float | None
) -> str:
    drawing = wanted.draw()
    if not isinstance(drawing, ChartDrawing):
        raise BadInput(f"view {wanted.name!r}: drawn on a canvas, not as a chart; export the page")
    fold = wanted.fold()
    for event in log:
        fold.add(event)
    picture = drawing.picture(drawing.prepare(fold.frame()), time, "")
    if cursor is not None and any(plot.timed for plot in picture.plots):
        # Nothing follows the cursor on a standing page but its line.
        picture = replace(picture, figures=())
    return svg(
        picture,
        picture.question or wanted.question,
        width=width,
        height=drawing.height,
        dark=dark,
        cursor=cursor,
    )


def page(log: Log, names: Sequence[str], *, title: str = "", dark: bool = False) -> str:
    """A whole HTML page that replays `log` in the views `names`: one bar moves all of them."""
    header = log.opened
    title = title or (header.study if header else "") or "A run"
    parts = [_view(log, view(name), dark) for name in names]
    here = Path(__file__).parent
    style = (here / "replay_page.css").read_text()
    for field, value in vars(theme.scheme(dark)).items():
        style = style.replace(f"var(--{field})", value)
    style = style.replace("var(--font)", theme.FONT).replace("var(--hue)", theme.hues(dark)[0])
    seconds = script().split("function speedName", 1)[0].replace("export function", "function")
    bar = (here / "replay_page.js").read_text()
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
        f'<style>{style}</style></head><body class="{"dark" if dark else "light"}">\n'
        f"<header><h1>{html.escape(title)}</h1>{_headlines(log)}</header>\n"
        f"<main>{''.join(parts)}\n{_facts(log)}</main>\n"
        f'<footer><button id="play" type="button">Play</button>'
        f'<input id="time" type="range" min="0" step="any" aria-label="Moment of the run">'
        f'<span id="clock"></span></footer>\n'
        f'<script type="module">{seconds}\n{bar}\ntimeBar({json.dumps(log.duration)})</script>\n'
        f"</body></html>\n"
    )


def _view(log: Log, wanted: View, dark: bool) -> str:
    """One view as a section: a canvas that replays, or a chart with a cursor line that moves."""
    drawing = wanted.draw()
    if isinstance(drawing, CanvasDrawing):
        inner = static_view(wanted, log, is_dark=dark)
    else:
        end = log.duration
        inner = f'<div class="chart">{_chart(log, wanted, WIDTH, dark, end, end)}</div>'
    inner = inner.replace(' xmlns="http://www.w3.org/2000/svg"', "")
    return f'<section data-view="{html.escape(wanted.name)}">{inner}</section>\n'


def _headlines(log: Log) -> str:
    found = list(measures(log).items())[:HEADLINES]
    return "<dl>" + "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(theme.figure(*value))}</dd></div>"
        for name, value in found
    ) + "</dl>"  # fmt: skip


def _facts(log: Log) -> str:
    """The header's settings, folded away: what the run was and where it was made."""
    header = log.opened
    if header is None:
        return ""
    about: dict[str, Any] = {"clock": header.clock, "seed": header.seed, "study": header.study}
    rows = [*about.items(), *flat(header.config), *flat(header.facts), *flat(header.machine)]
    body = "".join(
        f"<tr><th>{html.escape(str(name))}</th><td>{html.escape(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<details><summary>What was run, and where</summary><table>{body}</table></details>"


def save_page(
    log: Log, path: str | Path, names: Sequence[str], *, title: str = "", dark: bool = False
) -> int:
    """Write the page; its size in bytes. Raises BadInput where it cannot be written."""
    data = page(log, names, title=title, dark=dark).encode()
    try:
        Path(path).write_bytes(data)
    except OSError as fault:
        raise BadInput(f"{path}: cannot write the page ({fault.strerror})") from None
    return len(data)
