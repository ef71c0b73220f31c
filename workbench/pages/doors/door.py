"""A door of the start page: its frame, its button, and a fault in a line."""

from html import escape
from typing import Any

import panel as pn
import panel_material_ui as pmui

from engine.core.errors import BadInput
from workbench.pages.frame.shell import html

CSS = """
ul { list-style: none; margin: 0; padding: 0; display: grid; gap: 4px; font-size: 13px; }
li span { color: var(--wb-faint); }
.wrong { color: var(--wb-wrong); font-size: 13px; } .hint { font-size: 13px; }
"""
FRAME = {"border": "1px solid var(--wb-line)", "border-radius": "12px", "padding": "14px 16px",
         "flex": "1 1 264px", "min-width": "250px", "max-width": "620px"}  # fmt: skip
WIDE: dict[str, Any] = {"sizing_mode": "stretch_width", "margin": (6, 0), "size": "small"}


def door(title: str, *parts: Any) -> Any:
    """The frame of a door."""
    return pn.Column(html(f"<h2>{escape(title)}</h2>"), *parts, styles=FRAME, margin=0)


def go(label: str, *, second: bool = False, **options: Any) -> Any:
    """A button that leads on; `second`: not what most people want."""
    look = {**WIDE, "margin": (10, 0, 0, 0), "size": "medium"}
    return pmui.Button(
        label=label, variant="outlined" if second else "contained", **{**look, **options}
    )


def wrong(fault: BadInput) -> str:
    return f"<p class='wrong'>{escape(str(fault))}</p>"


def hint(text: str) -> str:
    return f"<p class='hint faint'>{escape(text)}</p>"
