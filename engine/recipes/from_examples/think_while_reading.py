"""A model that keeps a ledger while it reads it, as well as after it has read it whole.

Short ledgers and small amounts are shown often, the rest follows from them.
"""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import ClassVar

from tokenizers import Tokenizer

from engine.core.config import update
from engine.core.events import Token
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.streaming_thinking.streaming_thinking import ReadingConfig, run
from engine.reasoning.streams.responses import waits
from engine.reasoning.streams.words import StreamWords, words
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.stream_examples import Order, reading
from engine.recipes.task_tokenizer import task_tokenizer
from engine.tasks.ledger import LETTERS, Ledger, LedgerProblem
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.losses.language import Training

LONGEST, AMOUNTS = 12, (9, 99)  # entries and amounts of the examples
APART = 64  # position of the first thought
PROBLEMS, TOGETHER = 1000, 250  # of each score, in one run


class ThinkWhileReading(ExampleRecipe):
    """Ledgers of up to twelve entries: thoughts at once, some entries late, or after all.

    `order`: the one that all examples are in, if any. `policies`: those it is scored by.
    """

    order: ClassVar[Order | None] = None
    policies: ClassVar[Sequence[str]] = ("streaming", "batch")

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer(special=words(LETTERS))

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        chance = Random(f"read {split} {number}")
        entries = 1 + int(LONGEST * chance.random() ** 2)
        task = Ledger(entries=entries, largest=chance.choice(AMOUNTS))
        problem = task.problem(split, number)
        assert isinstance(problem, LedgerProblem)
        return reading(problem, StreamWords(tokenizer, LETTERS), APART, chance, self.order)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found = {}
        count = 8 if fast else PROBLEMS
        for policy in self.policies:
            for entries in (4, 5, 6):
                right = 0
                for first in range(0, count, TOGETHER):
                    config = self._config(folder, policy, entries, min(count, TOGETHER))
                    config = update(config, {"first": 100 * first})
                    right += sum(wait.right for wait in waits(Run.execute(run, config).log))
                name = f"Right after {entries} entries, {policy} thinking"
                found[name] = Score(right / count, *wilson(right, count), count)
        return found

    def samples(self, folder: Path) -> Sequence[str]:
        found = []
        for policy in self.policies:
            log = Run.execute(run, self._config(folder, policy, 4, 1)).log
            said = dict.fromkeys(LETTERS, "")
            for token in log.of(Token):
                said[token.thread] += token.text
            found.append(f"{policy}: {said['read']} {said['think']}")
        return found

    def _config(self, folder: Path, policy: str, entries: int, count: int) -> ReadingConfig:
        changes = {"policy": policy, "task.entries": entries, "problems": count, "virtual": True}
        return update(ReadingConfig(model=str(folder)), {**changes, "pace": 0.0})


RECIPE = ThinkWhileReading(
    name="ledger-700k",
    about="A very small Llama that thinks about a ledger while it reads it",
    hidden=128,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=32,
    width=384,
    training=Training(
        steps=7000, warmup=150, decay=2333, rate=2e-3, tokens=1504, context=188, long_context=188,
        report=70, evaluate=350, checkpoint=250,
    ),
)  # fmt: skip
