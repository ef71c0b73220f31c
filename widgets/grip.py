"""The handle under a chart: a person drags it, or moves it with the keys, to change the height."""

from functools import cache
from pathlib import Path
from typing import Any

import param

from widgets import theme
from widgets.component import Component


@cache
def script() -> str:
    """The handle's ES module: the canvas views' own, with a component around it."""
    here = Path(__file__).parent
    names = ("common.js", "stage_style.js", "height.js", "grip.js")
    return "\n".join((here / name).read_text() for name in names)


class Grip(Component):
    """`wanted` is the height in pixels a person asks for, 0 for the usual one.

    What is kept in the page is kept under `title`.
    """

    _esm = script()

    title = param.String(default="")
    usual = param.Number(default=300.0)
    wanted = param.Number(default=0.0)
    is_dark = param.Boolean(default=False)
    options = param.Dict(default={})

    def __init__(self, title: str, **more: Any) -> None:
        colours = {
            name: {"line": theme.scheme(dark).line, "faint": theme.scheme(dark).faint,
                   "ink": theme.scheme(dark).ink}
            for name, dark in (("light", False), ("dark", True))
        }  # fmt: skip
        super().__init__(
            title=title, options=colours, sizing_mode="stretch_width", margin=0, **more
        )
