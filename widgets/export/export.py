"""A run as a page that replays without a server: its views and one time bar for all of them.

The page holds everything it needs (its policy forbids it any request) and escapes all that comes
from the log.
"""

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.core.errors import BadInput
from engine.core.log import Log
from engine.core.writing import json_text
from widgets import theme
from widgets.export.replay import static_view
from widgets.page.bundle import bundle
from widgets.stage.figures import flat, measures
from widgets.stage.telling import telling
from widgets.view import view

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)
HEADLINES = 8  # figures in the head of the page


def page(
    log: Log,
    names: Sequence[str],
    *,
    title: str = "",
    dark: bool = False,
    at: float | None = None,
    is_still: bool = False,
    is_bare: bool = False,
) -> str:
    """A whole HTML page that replays `log` in the views `names`: one bar moves all of them.

    It begins `at` that moment (seconds), unless given where the run tells most. `is_still`: without
    the bar and what was run, to be taken a picture of; `is_bare`: nor a word around the marks.
    """
    at = telling(log, names) if at is None else at
    begin = log.duration if at is None else min(max(0.0, at), log.duration)
    look = f"{'dark' if dark else 'light'}{' still' * is_still}{' bare' * is_bare}"
    header = log.opened
    title = title or (header.study if header else "") or "A run"
    parts = [_section(name, static_view(view(name), log, is_dark=dark)) for name in names]
    here = Path(__file__).parent
    style = (here / "replay_page.css").read_text()
    for field, value in vars(theme.scheme(dark)).items():
        style = style.replace(f"var(--{field})", value)
    style = style.replace("var(--font)", theme.FONT).replace("var(--hue)", theme.hues(dark)[0])
    bar = bundle(here / "replay_page.js")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f'<meta name="viewport" content="width=device-width"><title>{html.escape(title)}</title>'
        f'<style>{style}</style></head><body class="{look}" data-at="{begin!r}">\n'
        f"<header><h1>{html.escape(title)}</h1>{_headlines(log)}</header>\n"
        f"<main>{''.join(parts)}\n{_facts(log)}</main>\n"
        f'<footer><button id="play" type="button">Play</button>'
        f'<input id="time" type="range" min="0" step="any" aria-label="Moment of the run">'
        f'<span id="clock"></span></footer>\n'
        f'<script type="module">{bar}\ntimeBar({json_text(log.duration)})</script>\n'
        f"</body></html>\n"
    )


def _section(name: str, inner: str) -> str:
    return f'<section data-view="{html.escape(name)}">{inner}</section>\n'


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
