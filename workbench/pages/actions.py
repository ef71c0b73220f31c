"""A row of buttons over the views: places to try, and what to do with the run.

One component in the browser: a Material button each would cost a page a tenth of its time.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import param

from widgets.page.bundle import bundle
from widgets.page.component import Component
from workbench.pages.frame.shell import address

NAME = 40  # characters of a run's name that a note has room for


class ActionRow(Component):
    """The row in the browser. `pressed` says which button was; `note` stands after the last."""

    _esm = bundle(Path(__file__).with_suffix(".js"))

    labels = param.List(default=[])
    framed = param.Integer(default=0, doc="how many of the first buttons have a frame")
    pressed = param.Dict(default={})
    note = param.Dict(default={}, doc="a few words, and a link with its address")


Action = tuple[str, Callable[[], None]]  # a button's label, and what it does


def kept(dark: bool, name: str) -> dict[str, str]:
    """The note that a run is kept, and as what, with the way to where it can be compared."""
    short = name if len(name) <= NAME else f"{name[: NAME - 1]}…"
    return {"text": f"kept as {short}", "link": "compare runs", "address": address("compare", dark)}


def actions(framed: Sequence[Action], plain: Sequence[Action]) -> ActionRow:
    """Buttons by label and what each does; `framed` ones first."""
    acts = [*framed, *plain]
    row = ActionRow(
        labels=[label for label, _ in acts], framed=len(framed), sizing_mode="stretch_width",
        margin=(0, 0, 4, 0),
    )  # fmt: skip

    def act(event: Any) -> None:
        place = event.new.get("place")
        if isinstance(place, int) and 0 <= place < len(acts):
            acts[place][1]()

    row.param.watch(act, "pressed")
    return row
