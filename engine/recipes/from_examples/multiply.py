"""A model that multiplies in its head: no steps are written, so it is often nearly right.

The sizes are chosen so that one sample is often wrong and a hundred samples mostly hold a right
one: there ways of choosing among samples differ.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from engine.core.events import Token
from engine.core.intervals import of_mean
from engine.core.run import Run
from engine.reasoning.repeated_sampling.repeated_sampling import RepeatedSamplingConfig, run
from engine.reasoning.solving.vote import vote
from engine.recipes.example_recipe import ExampleRecipe, Score
from engine.recipes.task_tokenizer import task_tokenizer
from engine.tasks.arithmetic import Arithmetic
from engine.tasks.task import Problem, Split
from engine.training.data.packing import Example, completed
from engine.training.losses.language import Training

# Short products first taught the long ones; how often each comes is of 8.
TAUGHT = ((1, 1), (2, 1), (3, 1), (2, 2), (2, 2), (3, 2), (3, 2), (3, 2))
ASKED = (Arithmetic(left=2, right=2), Arithmetic(left=3, right=2))
BOS, EOS = 0, 1
PROBLEMS, SAMPLES = 200, 64  # of the scores


class Multiply(ExampleRecipe):
    """Products of up to three by two digits, answered at once."""

    def tokenizer(self) -> Tokenizer:
        return task_tokenizer()

    def example(self, tokenizer: Tokenizer, split: Split, number: int) -> Example:
        left, right = TAUGHT[number % len(TAUGHT)]
        problem = Arithmetic(operation="*", left=left, right=right).problem(split, number)
        return spoken_problem(tokenizer, problem)

    def scores(self, folder: Path, fast: bool) -> dict[str, Score]:
        found: dict[str, Score] = {}
        for task in ASKED:
            size = f"{task.left} digits times {task.right}"
            config = RepeatedSamplingConfig(
                model=str(folder),
                task=task,
                problems=8 if fast else PROBLEMS,
                samples=8 if fast else SAMPLES,
            )
            log = Run.execute(run, config).log
            right_PN, answer_PN = log.blobs["right_PN"], log.blobs["answer_PN"]
            columns = {
                "right in one sample": right_PN.mean(1),
                f"right in one of {config.samples}": right_PN.max(1),
                "right by majority vote of them": voted(right_PN, answer_PN),
            }
            for name, values_P in columns.items():
                low, high = of_mean(values_P[:, None])
                found[f"{size}: {name}"] = Score(
                    float(values_P.mean()), float(low[0]), float(high[0]), config.problems
                )
        return found

    def samples(self, folder: Path) -> Sequence[str]:
        config = RepeatedSamplingConfig(model=str(folder), task=ASKED[1], problems=4, samples=3)
        log = Run.execute(run, config).log
        said: dict[str, str] = {}
        for token in log.of(Token):
            said[token.thread] = said.get(token.thread, "") + token.text
        prompts = [problem.prompt for problem in config.task.problems("test", 4)]
        return [
            "\n".join(prompt + said[thread] for thread in (f"p{n}", f"p{n}.1", f"p{n}.2"))
            for n, prompt in enumerate(prompts)
        ]


def spoken_problem(tokenizer: Tokenizer, problem: Problem) -> Example:
    """Read the prompt behind BOS, learn the answer and EOS."""
    prompt, answer = tokenizer.encode_batch([problem.prompt, problem.answer])
    return completed([BOS, *prompt.ids], [*answer.ids, EOS])


def voted(right_PN: np.ndarray, answer_PN: np.ndarray) -> np.ndarray:
    """[P] 1.0 where the commonest answer of a problem's samples is right; answers are numbers, -1
    for none."""
    chosen = [vote((str(a) if a >= 0 else "", 1.0) for a in row) for row in answer_PN.tolist()]
    said_PN = answer_PN.astype(str) == np.array(chosen)[:, None]
    return (said_PN & (right_PN > 0)).any(1).astype(float)


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
