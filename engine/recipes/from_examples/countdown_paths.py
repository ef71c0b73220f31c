"""A model that searches for Countdown's answers on parallel paths and sums them up.

It goes on from the model that imitates single searches, as ParaThinker fine-tunes a model that
reasons already (arXiv 2509.04475, section 5.1), and learns eight path words with their embeddings
and a summary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from tokenizers import Tokenizer

from engine.core.config import update
from engine.core.events import Mark, Token
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.paths.parallel_paths import PathsConfig, run
from engine.reasoning.solving.scores import scores_of
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.path_examples import example
from engine.recipes.trace_tokenizer import trace_tokenizer
from engine.tasks.countdown.paths import PATH_WORDS, PATHS
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.loop.settings import Training

PROBLEMS, FIRST = 200, 1 << 20  # of each score, and the first of them
WIDTHS = (1, 4, 8)


class CountdownPaths(ExampleRecipe):
    """Up to eight searches that start differently, cut anywhere, and the first solution found."""

    paths: ClassVar[int] = PATHS
    start: ClassVar[str] = "countdown-imitated"

    def tokenizer(self) -> Tokenizer:
        return trace_tokenizer(PATH_WORDS)

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        return example(number, split, self.training.context)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found = {}
        count = 2 if fast else PROBLEMS
        for width in WIDTHS:
            config = self._config(folder, width, count)
            right_P = scores_of(Run.execute(run, config).log)["right"]
            share, interval = float(right_P.mean()), wilson(float(right_P.sum()), count)
            paths = "1 path" if width == 1 else f"{width} paths"
            found[f"{paths} of {config.budget} tokens and a summary"] = Score(
                share, *interval, count
            )
        return found

    def samples(self, folder: Path) -> Sequence[str]:
        lanes: dict[str, str] = {}
        for event in Run.execute(run, self._config(folder, 4, 1)).log:
            if isinstance(event, Token):
                lanes[event.thread] += event.text
            elif isinstance(event, Mark) and event.name == "given":
                lanes[event.lane] = lanes.get(event.lane, "") + event.text
        return ["\n".join(f"{lane}: {text.strip()}" for lane, text in lanes.items())]

    def _config(self, folder: Path, width: int, problems: int) -> PathsConfig:
        changes = {"width": width, "problems": problems, "first": FIRST, "together": 32}
        return update(PathsConfig(model=str(folder)), {**changes, "pages": 8192})


RECIPE = CountdownPaths(
    name="countdown-paths",
    about="A very small Llama that searches for Countdown's answers on parallel paths",
    hidden=128,
    layers=4,
    heads=4,
    kv_heads=2,
    head_dim=32,
    width=320,
    training=Training(
        steps=700, warmup=40, decay=300, rate=1e-3, tokens=1536, context=384, long_context=384,
        weight_decay=0.05, precision="float32", report=20, evaluate=350, checkpoint=100,
    ),
)  # fmt: skip
