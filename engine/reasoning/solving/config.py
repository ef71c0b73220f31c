"""SolvingConfig: what every run that solves problems is made from; its methods add knobs."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from engine.core.config import knob
from engine.inference.requests.request import Sampling
from engine.reasoning.solving.method import Asked
from engine.reasoning.threads.config import ReasoningConfig, ThinkingConfig
from engine.reasoning.threads.layouts import Independent
from engine.tasks.task import Problem


class SolvingConfig(ThinkingConfig):
    """A model, and the test problems that it gets."""

    seed: int = knob(0, "Seed of the draws", low=0, high=2**31 - 1)
    problems: int = knob(3, "Test problems", low=1, high=100_000, log=True)
    first: int = knob(0, "Seed of the first problem", low=0, high=2**40)

    @abstractmethod
    def drawn(self) -> Iterable[tuple[int, Problem]]:
        """The problems by their numbers. Raises BadInput where there are too few."""

    def asked(self) -> Iterator[Asked]:
        """The problems with the seeds of their draws."""
        for number, problem in self.drawn():
            yield Asked(number, problem, self.seed * 1_000_003 + number)


class ThreadGroupConfig(SolvingConfig):
    """… by groups of threads over one paged cache."""

    sampling: Sampling = knob(make=Sampling, doc="How tokens are drawn", group="sampling")
    together: int = knob(
        1024, "Problems under way at once", low=1, high=1024, called="Problems at once"
    )
    threads: int = knob(128, "Threads that may run at once", low=1, high=1024, group="budget")
    keep_logits: bool = knob(
        False, "Keep every logit, to be checked from scratch", group="mechanism"
    )

    @abstractmethod
    def reasoning(self) -> ReasoningConfig:
        """The same as the reasoner takes it."""

    def threads_with(self, **changes: Any) -> ReasoningConfig:
        """A reasoner's config for threads that see nobody's words but by their method."""
        names = (
            "model", "dtype", "seed", "page_size", "pages", "sampling", "threads", "keep_logits",
        )  # fmt: skip
        same = {name: getattr(self, name) for name in names}
        return ReasoningConfig(**{**same, "layout": Independent(), "header": "", **changes})
