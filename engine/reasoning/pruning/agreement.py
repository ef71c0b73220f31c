"""How well a judge tells traces that will agree from those that will not: the area under its ROC.

In come scores and whether each pair agreed; questions are what was drawn independently, so
intervals are bootstraps over questions, not over pairs.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from engine.reasoning.pruning.judges import Judging, Trace

RESAMPLES = 1000


class Pairs(NamedTuple):
    """The pairs of one question: a judge's score of each, and whether the answers were the same."""

    score_N: np.ndarray
    same_N: np.ndarray


class Answered(Protocol):
    """A trace whose answer is known."""

    @property
    def answer(self) -> str: ...


class Area(NamedTuple):
    """An area under the ROC with its 95% interval, over so many pairs of so many questions."""

    value: float
    low: float
    high: float
    pairs: int
    questions: int


def auroc(score_N: np.ndarray, same_N: np.ndarray) -> float:
    """The chance that a pair that agrees scores above one that does not, equals counting half.

    By ranks (Mann and Whitney, 1947). NaN where one of the classes is empty.
    """
    same_N = np.asarray(same_N, bool)
    yes, no = int(same_N.sum()), int((~same_N).sum())
    if not yes or not no:
        return float("nan")
    _, place_N, count_U = np.unique(score_N, return_inverse=True, return_counts=True)
    rank_U = np.cumsum(count_U) - (count_U - 1) / 2  # of equals: their mean
    return float((rank_U[place_N][same_N].sum() - yes * (yes + 1) / 2) / (yes * no))


def area(questions: Sequence[Pairs], seed: int = 0) -> Area:
    """Over all pairs together, with a bootstrap over questions (Efron, 1979)."""
    chance, count = np.random.default_rng(seed), len(questions)
    found = []
    for _ in range(RESAMPLES):
        some = [questions[n] for n in chance.integers(0, count, count)]
        found.append(auroc(*_joined(some)))
    low, high = np.nanquantile(found, [0.025, 0.975])
    score_N, same_N = _joined(questions)
    return Area(auroc(score_N, same_N), float(low), float(high), len(same_N), count)


def gain(ours: Sequence[Pairs], theirs: Sequence[Pairs], seed: int = 0) -> tuple[float, float]:
    """The 95% interval of how much larger our area is, over the same resampled questions."""
    chance, count = np.random.default_rng(seed), len(ours)
    found = []
    for _ in range(RESAMPLES):
        some = chance.integers(0, count, count)
        one, other = (auroc(*_joined([pairs[n] for n in some])) for pairs in (ours, theirs))
        found.append(one - other)
    low, high = np.nanquantile(found, [0.025, 0.975])
    return float(low), float(high)


def within(questions: Sequence[Pairs]) -> tuple[float, int]:
    """The mean area inside single questions, and how many have pairs of both classes.

    Above one half only by telling traces apart, not by telling easy questions from hard ones.
    """
    areas = [auroc(*pairs) for pairs in questions]
    known = [value for value in areas if value == value]
    return (float(np.mean(known)) if known else float("nan")), len(known)


def scored(judging: Judging, question: str, begun: Sequence[Trace]) -> np.ndarray:
    """score_NN[i, j] of every trace j against every earlier one i; NaN elsewhere."""
    score_NN = np.full((len(begun), len(begun)), np.nan)
    for j in range(1, len(begun)):
        score_NN[:j, j] = judging.agree(question, begun[:j], begun[j])
    judging.forget()
    return score_NN


def pairs_of(traces: Sequence[Answered], score_NN: np.ndarray) -> Pairs:
    """Every pair of a question's traces once: `score_NN[i, j]` of trace j against an earlier i."""
    first, second = np.triu_indices(len(traces), 1)
    answers = np.array([trace.answer for trace in traces])
    return Pairs(score_NN[first, second], answers[first] == answers[second])


def _joined(questions: Sequence[Pairs]) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.concatenate([pairs.score_N for pairs in questions]),
        np.concatenate([pairs.same_N for pairs in questions]),
    )


def roc(score_N: np.ndarray, same_N: np.ndarray) -> np.ndarray:
    """[2, points]: false and true positive rate as the threshold falls, from (0, 0) to (1, 1)."""
    same_N = np.asarray(same_N, bool)
    order = np.argsort(-score_N, kind="stable")
    falls = np.flatnonzero(np.diff(score_N[order], append=-np.inf))  # after the last of equals
    yes, no = same_N[order].cumsum()[falls], (~same_N[order]).cumsum()[falls]
    rates = np.array([no / max(no[-1], 1), yes / max(yes[-1], 1)])
    return np.concatenate([np.zeros((2, 1)), rates], axis=1)
