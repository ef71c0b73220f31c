"""Pairs of traces of one question, and whether their answers agree: what a judge learns from.

In comes a model that thinks and a task; out come its sampled traces, by blocks of questions, and
examples in which two of them stand side by side. The judge is asked after every token of the
second: it has then read as much of both. The rarer class is drawn as often as the other (DeepPrune,
arXiv 2510.08483, section 4.1).
"""

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import NamedTuple

import numpy as np

from engine.core.config import Config, knob
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.requests.request import Request, sampling
from engine.tasks.part_sums import SERIAL, PartSums
from engine.tasks.task import Split
from engine.training.data.packing import Example

BLOCK = 32  # questions that are sampled together
SIDE = 1 << 30  # added to the seed of draws on the test side


class Traced(Config):
    """Who writes the traces, and about what."""

    model: str = knob("part-sums-500k", "A shipped model of the task, or a folder")
    task: PartSums = knob(PartSums(parts=3, entries=5), "What is asked")
    ask: str = knob(SERIAL, "What stands behind a problem to ask for its traces")
    temperature: float = knob(1.5, "Of the draws", low=0.0, high=10.0)
    longest: int = knob(160, "Tokens of a trace at most", low=1, high=1 << 20, unit="tokens")
    traces: int = knob(8, "Traces of a question", low=2, high=256)


class Said(NamedTuple):
    """A whole trace, and the answer that can be read from it ("" if none)."""

    text: str
    answer: str


class Asked(NamedTuple):
    """A question and its traces."""

    question: str
    traces: list[Said]


def asked(traced: Traced, split: Split, number: int) -> Asked:
    """The question of a number on that side, with its traces; always the same ones."""
    return _block(traced, split, number // BLOCK)[number % BLOCK]


@lru_cache(maxsize=256)
def _block(traced: Traced, split: Split, block: int) -> list[Asked]:
    """A block of questions, sampled in one batch of an engine."""
    config = InferenceConfig(
        model=traced.model, seed=block + (SIDE if split == "test" else 0), pages=4096,
        max_running=256, step_tokens=1024,
    )  # fmt: skip
    built = config.executor.build(config)
    assert built.tokenizer is not None
    engine = Engine(config, built.executor, built.clock, lambda event: None, built.tokenizer)
    wish = sampling(temperature=traced.temperature, max_tokens=traced.longest, n=traced.traces)
    numbers = range(block * BLOCK, (block + 1) * BLOCK)
    problems = [traced.task.problem(split, number) for number in numbers]
    ended: list[dict[str, str]] = [{} for _ in problems]
    for place, problem in enumerate(problems):

        def end(request: Request, into: dict[str, str] = ended[place]) -> None:
            into[request.id] = request.text

        tokens = np.array(built.tokenizer.encode(problem.prompt + traced.ask), np.int32)
        engine.add(Request(tokens, wish, id=f"q{place}", on_end=end))
    engine.run()
    return [
        Asked(p.prompt, [Said(texts[name], p.check(texts[name]).answer) for name in sorted(texts)])
        for p, texts in zip(problems, ended, strict=True)
    ]


def drawn(traces: Sequence[Said], chance: Random) -> tuple[Said, Said]:
    """Two different traces; as often ones that agree as ones that do not, where there are both."""
    pairs = [(a, b) for a in range(len(traces)) for b in range(len(traces)) if a != b]
    same = [pair for pair in pairs if traces[pair[0]].answer == traces[pair[1]].answer]
    other = [pair for pair in pairs if traces[pair[0]].answer != traces[pair[1]].answer]
    wanted, rest = (same, other) if chance.random() < 0.5 else (other, same)
    one, two = chance.choice(wanted or rest)
    return traces[one], traces[two]


def beside(
    question: Sequence[int], one: Sequence[int], two: Sequence[int], verdict: int, skip: int = 0
) -> Example:
    """Two traces at the same positions behind the question; the second sees the first.

    A token of `two` sees of `one` what stands no later than itself, so `verdict` after it is a
    verdict from equally much of both. Learnt after all tokens of `two` but the first `skip`.
    """
    parts = [len(question), len(one), len(two)]
    tokens_T = np.array([*question, *one, *two], np.int64)
    part_T = np.repeat(np.arange(3), parts)
    begin = [0, len(question), len(question)]
    positions_T = np.concatenate(
        [np.arange(size) + at for size, at in zip(parts, begin, strict=True)]
    )
    # [of, sees]: the first trace does not know the second.
    parts_33 = np.tri(3, dtype=bool)
    visible_TT = parts_33[part_T][:, part_T] & (positions_T[:, None] >= positions_T)
    at_L = np.arange(len(tokens_T) - len(two) + skip, len(tokens_T))
    target_L = np.full(len(at_L), verdict, np.int64)
    weight_L = np.ones(len(at_L), np.float32)
    return Example(tokens_T, at_L, target_L, weight_L, positions_T, visible_TT)
