"""Where a split attention runs, and the records it leaves."""

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from engine.core.clock import Clock
from engine.core.config import Policy
from engine.core.events import AnyEvent
from engine.core.run import Live

if TYPE_CHECKING:
    from engine.training.context_parallel.config import SequenceConfig


@dataclass
class Done:
    """What a run came to. `arrays[r]`: rank r's o, dq, dk, dv where they were asked for; `peaks`:
    bytes of tensors each rank held at most; `events` of all ranks in time order."""

    events: list[AnyEvent]
    peaks: list[int]
    arrays: list[dict[str, np.ndarray]] = field(default_factory=list)


class Place(Policy):
    """Concrete ones lie one to a file in `places`."""

    folder = "engine.training.context_parallel.places"
    real: ClassVar[bool] = True

    @abstractmethod
    def clock(self) -> Clock:
        """The clock that its events are under."""

    @abstractmethod
    def attend(self, config: "SequenceConfig", live: Live) -> Done:
        """Forward, and backward where it is asked for, on all ranks."""
