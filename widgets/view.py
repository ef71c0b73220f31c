"""A view: one question about a run, answered by a fold of its log and a drawing of the fold.

Views are found by folder: `widgets/views/<name>/__init__.py` exports `VIEW`. The page that hosts
them feeds every drawing the fold's frame at the shared time cursor; a drawing decides nothing.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from engine.core.errors import BadInput
from engine.core.names import suggest
from widgets.fold import Fold


class Drawing(Protocol):
    """Draws frames. `cursor` is seconds since the run opened; `chosen` is an owner id or ""."""

    def show(self, frame: dict[str, Any], cursor: float) -> None:
        """Draw this frame with the time cursor there."""
        ...

    def choose(self, owner: str) -> None:
        """Light up one request, thread, rank or page owner; "" for none."""
        ...

    def on_choose(self, tell: Callable[[str], None]) -> None:
        """Call `tell` when a person hovers or pins an owner in this drawing."""
        ...

    def dark(self, on: bool) -> None:
        """Follow the page's theme."""
        ...

    def __panel__(self) -> Any:
        """What Panel puts on the page."""
        ...

    def widget(self) -> Any:
        """The same for notebooks without Panel."""
        ...


@dataclass(frozen=True)
class View:
    """`whole`: the frame holds the run's whole history and the drawing moves the cursor itself;
    otherwise the host folds to the cursor and the frame is the state at that moment."""

    name: str
    question: str
    fold: Callable[[], Fold]
    draw: Callable[[], Drawing]
    whole: bool = False
    explain: tuple[tuple[str, str], ...] = ()  # how to read it: (of what, in words)


@cache
def views() -> dict[str, View]:
    """Every view there is, by name."""
    here = str(Path(__file__).parent / "views")
    found = {}
    for module in pkgutil.iter_modules([here]):
        if module.ispkg:
            view = getattr(importlib.import_module(f"widgets.views.{module.name}"), "VIEW", None)
            if view is not None:
                found[view.name] = view
    return found


def view(name: str) -> View:
    """The view of that name. Raises BadInput listing the names there are."""
    try:
        return views()[name]
    except KeyError:
        raise BadInput(f"view {name!r}: no such view; {suggest(name, views())}") from None
