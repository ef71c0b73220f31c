"""A model that writes programs over lists of digits, with execution signals and without."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

from tokenizers import Tokenizer

from engine.core.config import update
from engine.core.events import Mark
from engine.core.intervals import wilson
from engine.core.run import Run
from engine.reasoning.execution_guided.config import ExecutionGuidedConfig
from engine.reasoning.execution_guided.execution_guided import run
from engine.reasoning.execution_guided.signal import ERRORS, MARKS
from engine.reasoning.solving.scores import scores_of
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.program_examples import plain, signalled
from engine.recipes.task_tokenizer import task_tokenizer
from engine.tasks.list_programs import ListPrograms
from engine.tasks.task import Split
from engine.training.data.packing import Example
from engine.training.losses.language import Training

TASK = ListPrograms(least=1)  # one line first teaches what lines do
PROBLEMS, FIRST = 100, 100_000  # of the scores; no study asks those
WAYS: dict[str, dict[str, float]] = {
    "without signals": {"guided": False},
    "with signals alone (γ = 1)": {"guidance": 1.0},
    "guided by signals (γ = 3)": {"guidance": 3.0},
}


class ListProgramWriter(ExampleRecipe):
    """Half of the problems as they are, half up to a line under a signal."""

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer((*TASK.words, *ERRORS, *MARKS))

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        problem = TASK.problem(split, number)
        if number % 2 == 0:
            return plain(tokenizer, problem)
        return signalled(tokenizer, problem, Random(f"signal {split} {number}"))

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found = {}
        count = 4 if fast else PROBLEMS
        for name, changes in WAYS.items():
            config = ExecutionGuidedConfig(model=str(folder), problems=count, first=FIRST)
            right_P = scores_of(Run.execute(run, update(config, changes)).log)["right"]
            right = int(right_P.sum())
            found[f"Programs that pass, {name}"] = Score(
                right / count, *wilson(right, count), count
            )
        return found

    def samples(self, folder: Path) -> Sequence[str]:
        config = ExecutionGuidedConfig(model=str(folder), problems=3, first=FIRST)
        log = Run.execute(run, config).log
        shown = ("signal", "kept", "verdict")
        marks = [mark for mark in log.of(Mark) if mark.name in shown]
        problems = dict(config.drawn())
        return [
            "\n".join(
                [problem.prompt.strip()]
                + [mark.text.strip() for mark in marks if mark.lane == f"p{number}"]
            )
            for number, problem in problems.items()
        ]


RECIPE = ListProgramWriter(
    name="list-programs-170k",
    about="A very small Llama that writes programs over lists, told what candidates do or not",
    hidden=64,
    layers=3,
    heads=4,
    kv_heads=4,
    head_dim=16,
    width=192,
    training=Training(
        steps=6000, warmup=100, decay=2000, rate=3e-3, tokens=2080, context=208, long_context=208,
        precision="float32", report=50, evaluate=500, checkpoint=200,
    ),
)  # fmt: skip
