"""Executor of a split attention: ranks that are processes, or modelled devices and links."""

from abc import abstractmethod
from dataclasses import dataclass, field

import numpy as np

from engine.core.events import AnyEvent
from engine.core.executor import Executor
from engine.core.run import Live
from engine.training.context_parallel.split_attention import SplitAttention


@dataclass
class Done:
    """What a run came to. `arrays[r]`: rank r's o, dq, dk, dv where they were asked for; `peaks`:
    bytes of tensors each rank held at most; `events` of all ranks in time order."""

    events: list[AnyEvent]
    peaks: list[int]
    arrays: list[dict[str, np.ndarray]] = field(default_factory=list)


class AttentionExecutor(Executor):
    """Concrete ones lie one to a file in `executors`."""

    folder = "engine.training.context_parallel.executors"

    @abstractmethod
    def attend(self, asked: SplitAttention, live: Live) -> Done:
        """Forward, and backward where it is asked for, on all ranks."""
