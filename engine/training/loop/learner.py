"""Learner: the model and optimiser that the training loop drives, whole or one mesh rank's part."""

from abc import ABC, abstractmethod
from pathlib import Path

from torch import Tensor

from engine.training.loop.checkpoint import Facts, Saved


class Learner(ABC):
    """The work of a step, and of a checkpoint at `place` (None: none are written).

    `facts`: what of it makes a run this very run.
    """

    place: Path | None = None
    facts: Facts

    @abstractmethod
    def enter(self, phase: str, step: int) -> None:
        """Say what is done next: forward, backward, collective, optimiser, checkpoint …"""

    @abstractmethod
    def wait(self) -> None:
        """Until all that learn together are this far."""

    @abstractmethod
    def gradients(self, step: int) -> tuple[float, int]:
        """Forward, backward and the sums of a step: its mean loss, and its tokens."""

    @abstractmethod
    def update(self, rate: float, asked: bool) -> tuple[float, bool]:
        """Clip and update. The norm of the gradients before, and whether anybody was `asked` to
        stop."""

    @abstractmethod
    def resume(self, facts: Facts) -> Saved | None:
        """Go on from the checkpoint, where there is one. Raises BadInput for a foreign one."""

    @abstractmethod
    def save(self, step: int, facts: Facts) -> None:
        """Write the checkpoint; `step` is the next one to do."""

    @abstractmethod
    def whole(self) -> dict[str, Tensor] | None:
        """All weights by name, for the first; all ask."""
