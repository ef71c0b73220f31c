"""A door of the start page: its frame, its button, and a fault in a line."""

from collections.abc import Mapping
from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from workbench.pages.frame.shell import html

CSS = """
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px; font-size: 14px; }
li span { color: var(--wb-faint); }
.wrong { color: var(--wb-wrong); font-size: 14px; } .hint { font-size: 14px; }
.ways { display: grid; gap: 10px; padding-top: 10px; }
.ways a { display: block; text-align: center; padding: 6px 16px; border-radius: 8px;
  font-weight: 600; border: 1px solid var(--wb-accent); }
.ways a[href]:first-child { background: var(--wb-accent); color: var(--wb-paper); }
.ways a[aria-disabled] { background: none; color: var(--wb-faint); border-color: var(--wb-line); }
"""
FRAME = {"border": "1px solid var(--wb-line)", "border-radius": "12px", "padding": "14px 16px",
         "min-width": "0"}  # fmt: skip
# Four doors in a row, or two where there is no room: never three and one.
ROW = """:host { display: grid !important; gap: 14px; grid-template-columns: repeat(4, 1fr); }
@media (max-width: 1100px) { :host { grid-template-columns: repeat(2, 1fr); } }
@media (max-width: 560px) { :host { grid-template-columns: 1fr; } }"""
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (6, 0), "size": "small"}


def door(title: str, *parts: Any) -> Any:
    """The frame of a door."""
    return pn.Column(
        html(f"<h2>{escape(title)}</h2>"), *parts, styles=FRAME, margin=0,
        sizing_mode="stretch_width",
    )  # fmt: skip


def go(label: str, *, second: bool = False, **options: Any) -> Any:
    """A button that leads on; `second`: not what most people want."""
    look = {**WIDE, "margin": (10, 0, 0, 0), "size": "medium"}
    return pmui.Button(
        label=label, variant="outlined" if second else "contained", **{**look, **options}
    )


def ways(places: Mapping[str, str]) -> str:
    """Links that lead on, the likeliest first: by label, where to; "" while there is nowhere.

    Plain links: a component of React's writes what it last drew back to its model, and where two
    changes come soon after one another, the first may so win over the second.
    """
    links = ""
    for label, place in places.items():
        leads = f'href="{escape(place)}"' if place else "role=link aria-disabled=true"
        links += f"<a {leads}>{escape(label)}</a>"
    return f'<div class="ways">{links}</div>'


def wrong(fault: BadInput) -> str:
    return f"<p class='wrong'>{escape(str(fault))}</p>"


def hint(text: str) -> str:
    return f"<p class='hint faint'>{escape(text)}</p>"
