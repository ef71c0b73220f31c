"""Session: a problem under way with streams of its own, whoever decides what they hold."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from engine.reasoning.streams.caches import Feed, Stream, StreamCaches
from engine.reasoning.streams.config import StreamingConfig
from engine.reasoning.streams.words import StreamWords
from engine.tasks.task import Problem

ConfigT = TypeVar("ConfigT", bound=StreamingConfig)
ProblemT = TypeVar("ProblemT", bound=Problem)


@dataclass(eq=False)
class Session(ABC, Generic[ConfigT, ProblemT]):
    """Ask `feeds`, write them, then `take` what came back.

    `name` ends those of its `streams`, which are in the order of their lanes.
    """

    config: ConfigT
    problem: ProblemT
    words: StreamWords
    caches: StreamCaches
    name: str = ""
    streams: Sequence[Stream] = field(init=False)

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether there is nothing left to write."""

    @abstractmethod
    def due(self) -> float:
        """When it will have something to write at the latest (s); asked where it has nothing."""

    @abstractmethod
    def feeds(self, now: float) -> list[Feed]:
        """What can be written at `now`; all of it is."""

    @abstractmethod
    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """One of these has been written: the logits after it."""

    def kept(self) -> dict[str, np.ndarray]:
        """What is kept beside the log where the config asks for logits, by name."""
        return {}
