"""A model whose workers divide a queue of squares by reading each other as they write."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from engine.core.config import update
from engine.core.events import Token
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.loaded_model import open_model
from engine.reasoning.threads.run import run
from engine.reasoning.threads.shared_work import MODEL, NAMES, shared, work
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.task_tokenizer import task_tokenizer
from engine.recipes.view_examples import example
from engine.tasks.square_queue import QueueProblem, SquareQueue, queues
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.data.tokenizer import EOS
from engine.training.losses.language import Training

PROBLEMS = 100


class Queue(ExampleRecipe):
    """One to four workers, each first named, in the contiguous layout."""

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer(special=NAMES)

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        chance = Random(f"workers {split} {number}")
        problem = SquareQueue().problem(split, number)
        assert isinstance(problem, QueueProblem)
        waits = {name: wait for wait, name in enumerate(NAMES)}
        workers = chance.randint(1, len(NAMES))
        chosen = [chance.choice(NAMES)] if workers == 1 else NAMES[:workers]  # alone: anybody
        end: int = tokenizer.encode(EOS).ids[0]
        names = {name: waits[name] for name in chosen}
        return example(problem, names, lambda text: tokenizer.encode(text).ids, end)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found = {}
        count = 8 if fast else PROBLEMS
        problems = queues("test", count)
        for workers in (1, 2, 4):
            config = self._config(folder, workers)
            scores_P2 = work(config, open_model(config), problems)
            right = int(scores_P2[:, 0].sum())
            name = f"All squares right, {workers} worker{'s' * (workers > 1)}"
            found[name] = Score(right / count, *wilson(right, count), count)
        return found

    def samples(self, folder: Path) -> Sequence[str]:
        (problem,) = SquareQueue().problems("test", 1)
        found = []
        for workers in (1, 4):
            config = update(shared(self._config(folder, workers)), {"prompt": problem.prompt})
            said: dict[str, str] = {}
            for token in Run.execute(run, config).log.of(Token):
                said[token.thread] = said.get(token.thread, "") + token.text
            lines = [f"{name:5} {text}" for name, text in said.items()]
            found.append("\n".join([problem.prompt, *lines]))
        return found

    def _config(self, folder: Path, workers: int) -> ReasoningConfig:
        config = ReasoningConfig(model=str(folder), workers=workers)
        return update(config, {"layout": "contiguous"})


RECIPE = Queue(
    name=MODEL,
    about="A very small Llama whose workers divide a queue of squares through each other's cache",
    hidden=64,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=16,
    width=192,
    training=Training(
        steps=600, warmup=40, decay=300, rate=3e-3, tokens=1024, context=128, long_context=128,
        precision="float32", report=20, evaluate=300, checkpoint=200,
    ),
)  # fmt: skip
