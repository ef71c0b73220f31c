"""The layout of a sizing page: knobs left, a heading and what they come to in the middle."""

import logging
from collections.abc import Callable
from html import escape
from typing import Any

import panel as pn

from engine.core.errors import BadInput
from widgets.knobs.knobs import Knobs
from workbench.pages.doors.cluster import serving_address
from workbench.pages.frame.shell import Shell, address

MOST = 4096  # devices of a fleet that is searched
TABS = """
.tabs { display: flex; gap: 4px; margin-bottom: 10px; }
.tabs a { padding: 5px 14px; border: 1px solid var(--wb-line); border-radius: 8px; }
.tabs a[aria-current] { background: var(--wb-raised); color: var(--wb-ink); font-weight: 600; }
"""


def tabs(now: str, model: str, device: str, count: int, dark: bool) -> str:
    """Links to what else is predicted of the same model on as many of the same device, as HTML.
    `now`: which of them the page is."""
    on = {"model": model, "cluster.device": device, "cluster.devices": count}
    places = {
        "training": address("predict", dark, kind="training", **on),
        "serving": serving_address(model, device, count, dark),
        "fleet": address("design", dark, model=model, device=device, devices=min(count, MOST)),
    }
    links = (
        f'<a href="{escape(place)}"{" aria-current=page" if name == now else ""}>'
        f"{name.capitalize()}</a>"
        for name, place in places.items()
    )
    return f'<nav class="tabs" aria-label="kinds of runs">{"".join(links)}</nav>'


def lay_out(shell: Shell, knobs: Knobs, head: Any, shown: Any, begin: Callable[[], None]) -> Any:
    """The page of `shell` with `knobs`, `head` and `shown`; `begin` is called once it is there."""
    wide = {"sizing_mode": "stretch_width"}
    shell.page.param.update(sidebar_width=300, main_width=1560, app_bar_width="100%")
    shell.page.sidebar = [pn.Column(knobs.panel, margin=(12, 16), **wide)]
    shell.page.main = [
        pn.Column(head, pn.Column(shown, margin=(18, 0), **wide), margin=(24, 28), **wide)
    ]
    pn.state.onload(begin)
    return shell.page


def in_a_line(fault: Exception) -> str:
    """What came in the way, as HTML; one that is not the person's goes to the log in full."""
    said = str(fault)
    if not isinstance(fault, BadInput):
        logging.getLogger(__name__).error("not computed", exc_info=fault)
        said = str(BadInput(f"this could not be computed: {type(fault).__name__}: {fault}"))
    return f"<p class='wrong'>{escape(said)}</p>"
