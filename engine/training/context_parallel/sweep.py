"""Curves drawn beside a run: the same attention at other sizes."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.core.config import Policy
from engine.core.run import Live

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig


class Sweep(Policy):
    """Concrete ones lie one to a file in `sweeps`."""

    folder = "engine.training.context_parallel.sweeps"

    def axes(self) -> dict[str, Any]:
        """Panels with their labels, as `facts["curves"]` of the header has them."""
        return {}

    @abstractmethod
    def draw(self, config: "SequenceConfig", live: Live) -> None:
        """Emit the curves."""


def curve(live: Live, panel: str, series: str, x: list[float], y: list[float]) -> None:
    """A line of a panel, at the time the log has come to."""
    live.keep(live.log.duration, f"curve/{panel}/{series}", np.array([x, y], np.float64))
