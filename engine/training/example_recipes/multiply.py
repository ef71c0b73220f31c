"""A model that multiplies in its head: no steps are written, so it is often nearly right.

The sizes are chosen so that one sample is mostly wrong and a hundred samples mostly hold a right
one: there ways of choosing among samples differ.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from engine.core.events import Token
from engine.core.log import Log
from engine.core.run import Run
from engine.reasoning.coverage_curves import SOLVED
from engine.reasoning.repeated_sampling import run
from engine.reasoning.repeated_sampling_config import RepeatedSamplingConfig
from engine.tasks.arithmetic import Arithmetic
from engine.tasks.task import Problem, Split
from engine.training.example_recipe import ExampleRecipe, Score
from engine.training.examples import completed
from engine.training.language import Training
from engine.training.packing import Example
from engine.training.task_tokenizer import task_tokenizer

# Short products first taught the long ones; how often each comes is of 8.
TAUGHT = ((1, 1), (2, 1), (3, 1), (2, 2), (2, 2), (3, 2), (3, 2), (3, 2))
ASKED = Arithmetic(operation="*", left=3, right=2)
BOS, EOS = 0, 1
PROBLEMS, SAMPLES = 400, 128  # of the scores


class Multiply(ExampleRecipe):
    """Products of up to three by two digits, answered at once."""

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer()

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        left, right = TAUGHT[number % len(TAUGHT)]
        problem = Arithmetic(operation="*", left=left, right=right).problem(split, number)
        return spoken_problem(tokenizer, problem)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        log = sampled(folder, 8 if fast else PROBLEMS, 8 if fast else SAMPLES)
        right_PN = log.blobs["right_PN"]
        n = right_PN.shape[1]
        lines = {
            "Right in one sample": log.blobs[f"curve/{SOLVED}/coverage"][:, 0],
            f"Right in one of {n} samples": log.blobs[f"curve/{SOLVED}/coverage"][:, -1],
            f"Right by majority vote of {n}": log.blobs[f"curve/{SOLVED}/majority vote"][:, -1],
        }
        return {
            name: Score(float(mean), float(low), float(high), len(right_PN))
            for name, (_, mean, low, high) in lines.items()
        }

    def samples(self, folder: Path) -> Sequence[str]:
        log = sampled(folder, 4, 2)
        said: dict[str, list[str]] = {}
        for token in log.of(Token):
            said.setdefault(token.thread, []).append(token.text)
        prompts = [problem.prompt for problem in ASKED.problems("test", 4)]
        return [f"{p}{''.join(said[f'p{place}'])}" for place, p in enumerate(prompts)]


def sampled(folder: Path, problems: int, samples: int) -> Log:
    """The log of sampling test problems from the model in `folder`."""
    config = RepeatedSamplingConfig(
        model=str(folder), task=ASKED, problems=problems, samples=samples
    )
    return Run.execute(run, config).log


def spoken_problem(tokenizer: Tokenizer, problem: Problem) -> Example:
    """Read the prompt behind BOS, learn the answer and EOS."""
    prompt, answer = tokenizer.encode_batch([problem.prompt, problem.answer])
    return completed([BOS, *prompt.ids], [*answer.ids, EOS])


RECIPE = Multiply(
    name="multiply-1m",
    about="A very small Llama that multiplies three digits by two without writing steps",
    hidden=128,
    layers=4,
    heads=4,
    kv_heads=2,
    head_dim=32,
    width=384,
    training=Training(
        steps=5000, warmup=100, decay=1500, rate=3e-3, tokens=4096, context=64, long_context=64,
        report=50, evaluate=500, checkpoint=250,
    ),
)  # fmt: skip
