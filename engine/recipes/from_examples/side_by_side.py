"""A model of four streams that keeps a sum, and says it when asked, side by side or in turns."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from engine.core.config import knob, update
from engine.core.events import Token
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.multi_stream.multi_stream import run
from engine.reasoning.streams.responses import verdicts
from engine.reasoning.streams.script import who_sees
from engine.reasoning.streams.words import StreamWords, words
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.stream_examples import in_turns, together
from engine.recipes.task_tokenizer import task_tokenizer
from engine.tasks.running_sum import LETTERS, STREAMS, RunningSum, SumProblem
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.losses.language import Training

SEES = "think: read; say: ask think"
PROBLEMS = 400  # of each score, with a few questions each


class SideBySide(ExampleRecipe):
    """Running sums of 32 rows, as four streams or as one that takes turns."""

    beside: float = knob(0.6, "Share of the examples that are side by side", low=0.0, high=1.0)

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer(special=words(LETTERS))

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        chance = Random(f"rows {split} {number}")
        problem, spoken = RunningSum().problem(split, number), StreamWords(tokenizer, LETTERS)
        assert isinstance(problem, SumProblem)
        if chance.random() < self.beside:
            return together(problem, spoken, who_sees(SEES, STREAMS))
        return in_turns(problem, spoken, chance)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found = {}
        for form in self.forms:
            count = 8 if fast else PROBLEMS
            log = Run.execute(run, self._config(folder, form, count)).log
            right = sum(right == asked for right, asked in verdicts(log))
            name = f"Every question of a problem answered rightly, {form}"
            found[name] = Score(right / count, *wilson(right, count), count)
        return found

    def samples(self, folder: Path) -> Sequence[str]:
        found = []
        for form in self.forms:
            said: dict[str, str] = {}
            for token in Run.execute(run, self._config(folder, form, 1)).log.of(Token):
                said[token.thread] = said.get(token.thread, "") + token.text
            lines = [f"{name:5} {text}" for name, text in said.items()]
            found.append("\n".join([f"{form}:", *lines]))
        return found

    @property
    def forms(self) -> tuple[str, ...]:
        """Those that it learns."""
        return ("side by side", "in turns") if self.beside else ("in turns",)

    def _config(self, folder: Path, form: str, problems: int) -> StreamsConfig:
        changes = {"form": form, "problems": problems, "virtual": True}
        return update(StreamsConfig(model=str(folder)), changes)


RECIPE = SideBySide(
    name="running-sum-400k",
    about="A very small Llama of four streams that reads, thinks and answers side by side",
    hidden=96,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=24,
    width=288,
    training=Training(
        steps=4000, warmup=150, decay=1333, rate=2e-3, tokens=2048, context=256, long_context=256,
        report=40, evaluate=200, checkpoint=250,
    ),
)  # fmt: skip
