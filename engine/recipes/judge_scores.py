"""How well a trained judge of agreement does on questions nobody learnt from, and what it says."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.core.config import update
from engine.reasoning.pruning.agreement import Pairs, area, pairs_of, scored
from engine.reasoning.pruning.judges import Judge, SharedPrefix, Trace, Trained
from engine.recipes.example_recipe import Score
from engine.recipes.trace_pairs import Asked, Traced, asked

FIRST = 1 << 20  # number of the first question: none of these is in the loss of the held-out side
QUESTIONS = 96
READ = (24, 40, 72)  # tokens after which the judge is asked
SHOWN = 2


def scores(folder: Path, traced: Traced, fast: bool) -> dict[str, Score]:
    """Areas under the ROC over all pairs of traces of each question; n counts questions."""
    count = 4 if fast else QUESTIONS
    known = _questions(traced, count)
    other = update(traced, {"task.parts": 4, "task.entries": 4})
    areas: dict[str, Sequence[Pairs]] = {}
    judge = Trained(model=str(folder))
    for read in READ:
        areas[f"AUROC after {read} tokens"] = judged(judge, known, read)
        areas[f"… of the shared prefix, after {read} tokens"] = judged(SharedPrefix(), known, read)
    away = judged(judge, _questions(other, count), READ[1])
    areas[f"AUROC after {READ[1]} tokens, four sums instead of three"] = away
    return {name: _score(pairs) for name, pairs in areas.items()}


def judged(judge: Judge, questions: Sequence[Asked], read: int) -> list[Pairs]:
    """Every pair of each question's traces, cut after `read` characters, as `judge` sees it."""
    judging = judge.open(dict)
    found = []
    for question, traces in questions:
        begun = [Trace(str(n), trace.text[:read]) for n, trace in enumerate(traces)]
        found.append(pairs_of(traces, scored(judging, question, begun)))
    return found


def samples(folder: Path, traced: Traced) -> list[str]:
    """A few questions with two beginnings each, what the judge says, and the answers."""
    judging = Trained(model=str(folder)).open(dict)
    found = []
    for question, traces in _questions(traced, SHOWN):
        answers = [trace.answer for trace in traces]
        last = next((n for n, a in enumerate(answers) if a != answers[0]), 1)
        one, two = (Trace(str(n), traces[n].text[: READ[-1]]) for n in (0, last))
        said = judging.agree(question, [one], two)[0]
        found.append(
            f"{question}\n{one.text}… {answers[0] or 'no answer'}\n"
            f"{two.text}… {answers[last] or 'no answer'}\nagree: {said:.0%}"
        )
    return found


def _questions(traced: Traced, count: int) -> list[Asked]:
    return [asked(traced, "test", FIRST + number) for number in range(count)]


def _score(pairs: Sequence[Pairs]) -> Score:
    found = area(pairs)
    none = np.isnan(found.value)  # too few questions for both classes
    value, low, high = (0.5, 0.0, 1.0) if none else (found.value, found.low, found.high)
    return Score(value, min(low, value), max(high, value), found.questions)
