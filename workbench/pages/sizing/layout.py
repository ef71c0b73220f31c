"""The layout of a sizing page: knobs left, a heading and what they come to in the middle."""

from collections.abc import Callable
from typing import Any

import panel as pn

from widgets.knobs.knobs import Knobs
from workbench.pages.frame.shell import Shell


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
