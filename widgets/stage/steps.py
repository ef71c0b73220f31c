"""Step times: when each scheduler step of a run ended, folded like a view, seen by nobody, and read
by the transport to step on and back."""

from array import array
from typing import Any

from engine.core.events import AnyEvent, Span
from widgets.fold import Fold
from widgets.view import View


class StepsFold(Fold):
    """When each scheduler step ended."""

    def __init__(self) -> None:
        self.times: array[float] = array("d")

    def add(self, event: AnyEvent) -> None:
        if type(event) is Span and event.name == "step":
            self.times.append(event.time)

    def frame(self) -> dict[str, Any]:
        return {"times": self.times}


class Unseen:
    """The drawing of a feed that only folds."""

    def show(self, frame: dict[str, Any], cursor: float) -> None:
        return

    def choose(self, owner: str) -> None:
        return

    def on_choose(self, tell: Any) -> None:
        return

    def dark(self, on: bool) -> None:
        return

    def __panel__(self) -> Any:
        return None

    def widget(self) -> Any:
        return None


STEPS = View("steps", "When did each step end?", StepsFold, Unseen, whole=True)
