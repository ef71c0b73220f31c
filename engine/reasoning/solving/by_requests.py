"""RequestConfig: methods whose attempts are requests to an engine that knows no threads."""

from collections.abc import Callable, Iterable
from typing import Any

from engine.core.config import knob
from engine.core.events import AnyEvent
from engine.core.run import Live
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.reasoning.solving.config import SolvingConfig
from engine.tasks.task import Problem, Task


class RequestConfig(SolvingConfig):
    """A model, problems of a task, and the engine that answers requests about them."""

    temperature: float = knob(0.0, "0 takes the likeliest token", low=0.0, high=10.0)
    prefix_sharing: bool = knob(True, "Find prefixes computed before", group="engine")

    def drawn(self) -> Iterable[tuple[int, Problem]]:
        task: Task = self.task  # type: ignore[attr-defined]
        return enumerate(task.problems("test", self.problems, self.first))

    def serving(self, **changes: Any) -> InferenceConfig:
        """The engine that answers."""
        shared = ("model", "dtype", "seed", "prefix_sharing", "page_size", "pages")
        return InferenceConfig(**{name: getattr(self, name) for name in shared}, **changes)


def open_engine(
    config: RequestConfig, live: Live, emit: Callable[[AnyEvent], None] | None = None, **facts: Any
) -> tuple[Engine, Built]:
    """A run's log, opened with these facts too, and its engine, which tells `emit`, or the log, of
    what it does. Raises BadInput."""
    live.report("opening the model", 0, 0)
    serving = config.serving()
    built = serving.executor.build(serving)
    live.open(
        config,
        built.clock,
        pages=config.pages,
        page_size=config.page_size,
        **built.executor.facts.header(),
        **facts,
        commands=["abort"],
    )
    return Engine(serving, built.executor, built.clock, emit or live.emit, built.tokenizer), built
