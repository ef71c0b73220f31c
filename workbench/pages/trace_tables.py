"""Tables of device traces on a page: of one below its run, of two where they are compared."""

from html import escape
from typing import Any

from engine.core.chrome.device_trace import DeviceTrace
from engine.core.log import Log
from workbench.pages.frame.shell import html
from workbench.traces.tables import Table, difference_table, tables

CSS = """
.tables { display: flex; flex-wrap: wrap; gap: 0 28px; } details[open] { flex-basis: 100%; }
summary { cursor: pointer; color: var(--wb-faint); padding: 4px 0; }
.traced { border-collapse: collapse; font-size: 12px; margin: 4px 0 14px; }
.traced th { text-align: left; font-weight: 400; color: var(--wb-faint); }
.traced thead th { font-weight: 600; }
.traced td { text-align: right; font-variant-numeric: tabular-nums; }
.traced th, .traced td { padding: 4px 16px 4px 0; border-bottom: 1px solid var(--wb-line); }
.traced th:first-child { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
"""


def of_run(log: Log) -> Any | None:
    """What a device's trace comes to; None for a run that is none."""
    trace = DeviceTrace.of_log(log)
    return None if trace is None else _pane(tables(trace), 0)


def of_two(first: Log, second: Log) -> Any | None:
    """The kernels of two traces beside one another; None where either is no device's trace."""
    sides = DeviceTrace.of_log(first), DeviceTrace.of_log(second)
    if sides[0] is None or sides[1] is None:
        return None
    return _pane([difference_table(sides[0], sides[1])], 1)


def _pane(listed: list[Table], opened: int) -> Any:
    """Tables one under another, the first `opened` of them unfolded."""
    parts = []
    for place, (title, heads, rows) in enumerate(listed):
        if rows:
            body = "".join(f"<tr><th scope='row'>{_cells(row)}</tr>" for row in rows)
            head = "".join(f"<th scope='col'>{escape(name)}</th>" for name in heads)
            is_open = " open" if place < opened else ""
            table = f"<table class='traced'><thead><tr>{head}</tr></thead>{body}</table>"
            parts.append(
                f"<details{is_open}><summary>{escape(title)}</summary>"
                f"<div class='wide' tabindex='0'>{table}</div></details>"
            )
    return html(
        f"<div class='tables'>{''.join(parts)}</div>",
        CSS,
        margin=(0, 0, 16, 0),
        sizing_mode="stretch_width",
    )


def _cells(row: tuple[str, ...]) -> str:
    first, *rest = (escape(text) for text in row)
    return f"{first}</th>" + "".join(f"<td>{text}</td>" for text in rest)
