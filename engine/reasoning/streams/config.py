"""StreamingConfig: what all runs of streams are made from; a system adds what its streams hold."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from engine.core.config import knob
from engine.reasoning.threads.config import ReasoningConfig, ThinkingConfig
from engine.tasks.task import Task


class StreamingConfig(ThinkingConfig):
    """A model that reads and writes streams, problems that arrive while it does, and a clock.

    `letters`: what each stream is written in, by its name.
    """

    gone: ClassVar = ("sweep",)
    letters: ClassVar[Mapping[str, str]]
    problems: int = knob(1, "Problems side by side", low=1, high=2048, log=True)
    first: int = knob(0, "Seed of the first test problem", low=0, high=2**31 - 1)
    pace: float = knob(
        0.004, "Seconds between two arrivals of input; 0: it is there at once",
        low=0.0, high=10.0, unit="s",
    )  # fmt: skip
    virtual: bool = knob(
        False,
        "A virtual clock: each forward pass lasts `pass_s`",
        group="clock",
        called="Virtual clock",
    )
    pass_s: float = knob(
        0.001, "What a pass lasts on the virtual clock", low=1e-6, high=10.0, unit="s",
        group="clock", called="Time of a pass")  # fmt: skip
    page_size: int = knob(8, "Tokens in a page", low=1, high=256, unit="tokens", group="cache")
    pages: int = knob(64, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)
    keep_logits: bool = knob(
        False, "Keep every stream's logits, to be checked from scratch", group="cache"
    )

    @property
    @abstractmethod
    def each(self) -> int:
        """Pages that a problem's streams may need."""

    def drawn(self) -> list[Any]:
        """The test problems."""
        task: Task = self.task  # type: ignore[attr-defined]
        return list(task.problems("test", self.problems, self.first))

    def reasoning(self) -> ReasoningConfig:
        """The threads' config of such a run, with pages for all of its problems."""
        return ReasoningConfig(
            model=self.model, dtype=self.dtype, page_size=self.page_size,
            pages=max(self.pages, self.each * self.problems),
        )  # fmt: skip
