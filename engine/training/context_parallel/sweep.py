"""Curves drawn beside a run: the same attention at other sizes."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from engine.core.config import Policy
from engine.core.plot import Plot
from engine.core.run import Live

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig


class Sweep(Policy):
    """Concrete ones lie one to a file in `sweeps`."""

    folder = "engine.training.context_parallel.sweeps"

    plots: ClassVar[Sequence[Plot]] = ()

    @abstractmethod
    def draw(self, config: "SequenceConfig", live: Live) -> None:
        """Emit the curves."""
