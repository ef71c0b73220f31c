"""A model that imitates searches of Countdown: serial ones, and ones that spawn and join threads.

The paper trains one model for each; here the prompt's first word says which, so that both know the
same arithmetic (arXiv 2504.15466, section 4.1). One that learnt on from it, serial searches alone,
is `countdown_serial`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tokenizers import Tokenizer

from engine.recipes.countdown.examples import example
from engine.recipes.countdown.scores import samples, scores
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.trace_tokenizer import trace_tokenizer
from engine.tasks.countdown.traces import WORDS
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.loop.settings import Training


class Countdown(ExampleRecipe):
    """Four numbers to 20 and a target to 49, drawn evenly among those that can be reached."""

    searches: ClassVar[tuple[str, ...]] = ("parallel", "serial")  # that it is scored by

    def tokenizer(self) -> Tokenizer:
        return trace_tokenizer(WORDS)

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        return example(number, split, self.training.context)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found = scores(folder, fast, self.searches)
        return {name: Score(*score) for name, score in found.items()}

    def samples(self, folder: Path) -> Sequence[str]:
        return samples(folder, self.searches)


RECIPE = Countdown(
    name="countdown-imitated",
    about="A very small Llama that searches for Countdown's answers as a symbolic solver does",
    hidden=128,
    layers=4,
    heads=4,
    kv_heads=2,
    head_dim=32,
    width=320,
    training=Training(
        steps=3500, warmup=100, decay=1200, rate=3e-3, tokens=4096, context=256, long_context=256,
        weight_decay=0.05, report=25, evaluate=250, checkpoint=100,
    ),
)  # fmt: skip
