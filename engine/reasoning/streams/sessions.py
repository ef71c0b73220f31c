"""From a config of streams to its problems, and to a session for each, side by side or in turns."""

from collections.abc import Sequence

from engine.reasoning.streams.caches import StreamCaches
from engine.reasoning.streams.config import StreamsConfig
from engine.reasoning.streams.side_by_side import SideBySide
from engine.reasoning.streams.turn_taking import TurnTaking
from engine.reasoning.streams.words import StreamWords
from engine.tasks.running_sum import SumProblem


def drawn(config: StreamsConfig) -> list[SumProblem]:
    """The test problems of a config."""
    return list(config.task.problems("test", config.problems, config.first))  # type: ignore[arg-type]


def sessions_of(
    config: StreamsConfig, words: StreamWords, caches: StreamCaches, problems: Sequence[SumProblem]
) -> list[SideBySide | TurnTaking]:
    """A session for each problem, over the same pages."""
    form = SideBySide if config.form == "side by side" else TurnTaking
    names = [str(place) if len(problems) > 1 else "" for place in range(len(problems))]
    return [
        form(config, problem, words, caches, name)
        for problem, name in zip(problems, names, strict=True)
    ]
