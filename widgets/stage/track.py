"""A track: one run on a stage, and how far each view has got with it."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from engine.core.log import Log
from engine.core.run import Run
from widgets.stage.feed import Feed
from widgets.stage.steps import STEPS, Unseen
from widgets.view import View

GRACE = 0.15  # seconds a new run may take before its beginnings are shown


class Track:
    """One run on a stage, with a feed for each view."""

    def __init__(self, views: Sequence[View]) -> None:
        self.run: Run | None = None
        self.opened = 0.0  # perf_counter
        self.feeds = [Feed(v) for v in views]
        self.steps = Feed(STEPS, Unseen())

    def open(self, run: Run | None) -> None:
        self.run, self.opened = run, perf_counter()
        for feed in (*self.feeds, self.steps):
            feed.open(run.log if run is not None else Log())

    def tell(self, command: dict[str, Any]) -> None:
        """Pass on what a person told the run; ignored once it is over."""
        if self.run is not None:
            self.run.tell(**command)

    @property
    def knows_steps(self) -> bool:
        """Whether the run is over and all its steps are folded."""
        over = self.run is not None and self.run.state == "closed"
        return over and self.steps.folded == len(self.steps.log)

    @property
    def is_fresh(self) -> bool:
        """A run that has just begun and may end at once: better to wait than to draw twice."""
        if self.run is None or self.run.state == "closed":
            return False
        return perf_counter() - self.opened < GRACE
