"""CountdownConfig: Countdown problems by their numbers, for models that speak the words of a form.

Methods that fork and join write searches down in words of their own: `speaking` refuses a model
that was taught others.
"""

from collections.abc import Iterator, Sequence

from engine.core.errors import BadInput
from engine.reasoning.solving.config import ThreadGroupConfig
from engine.reasoning.threads.loaded_model import LoadedModel
from engine.tasks.countdown.search import even_problem
from engine.tasks.task import Problem


class CountdownConfig(ThreadGroupConfig):
    """Problems of Countdown, evenly hard, one after another from the number `first` on."""

    def drawn(self) -> Iterator[tuple[int, Problem]]:
        for number in range(self.first, self.first + self.problems):
            yield number, even_problem("test", number)


def speaking(loaded: LoadedModel, words: Sequence[str], what: str, recipe: str) -> LoadedModel:
    """`loaded`. Raises BadInput where its tokens are not these words: `what` is written in them,
    and `recipe` teaches them."""
    if loaded.config.vocab != len(words):
        raise BadInput(
            f"model {loaded.name!r}: {loaded.config.vocab} tokens, but {what} have {len(words)} "
            f"words; take a model that `workbench train {recipe}` makes"
        )
    return loaded
