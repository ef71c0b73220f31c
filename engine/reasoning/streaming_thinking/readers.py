"""From a reading config to its model, its problems and a reader for each of them."""

from collections.abc import Sequence

from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.models.loading.find import find
from engine.models.text.tokenizer import Tokenizer
from engine.reasoning.streaming_thinking.config import ReadingConfig
from engine.reasoning.streaming_thinking.reader import Reader
from engine.reasoning.streams.caches import StreamCaches
from engine.reasoning.streams.words import StreamWords
from engine.reasoning.threads.loaded_model import LoadedModel, open_model
from engine.reasoning.threads.step_events import Emit
from engine.tasks.ledger import LETTERS, LedgerProblem


def open_reader(config: ReadingConfig) -> tuple[LoadedModel, StreamWords]:
    """The model and the words of its streams. Raises BadInput."""
    loaded, found = open_model(config.reasoning()), find(config.model)
    if not isinstance(loaded.tokenizer, Tokenizer):
        raise BadInput(f"model {found.name}: has no tokenizer; give one of streams")
    return loaded, StreamWords(loaded.tokenizer.rules, LETTERS)


def drawn(config: ReadingConfig) -> list[LedgerProblem]:
    """The test problems of a config."""
    return list(config.task.problems("test", config.problems, config.first))  # type: ignore[arg-type]


def readers_of(
    config: ReadingConfig, loaded: LoadedModel, words: StreamWords, clock: Clock, emit: Emit,
    problems: Sequence[LedgerProblem], forced: Sequence[int] = (),
) -> list[Reader]:  # fmt: skip
    """A reader for each problem, over the same pages."""
    caches = StreamCaches(loaded, clock, emit, tell=False)
    names = [str(place) if len(problems) > 1 else "" for place in range(len(problems))]
    return [
        Reader(config, problem, words, caches, name, forced)
        for problem, name in zip(problems, names, strict=True)
    ]
