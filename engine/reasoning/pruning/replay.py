"""What pruning would have made of traces that were all let finish: clusters, vote, tokens.

With the same judge and the same draws this is what a run that prunes ends with; so one rehearsal
serves every judge and every threshold. Shape letter: N traces of a question.
"""

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import NamedTuple

import numpy as np

from engine.reasoning.pruning.clustering import Clustering, Clusters, ballots, vote
from engine.reasoning.pruning.config import PruningConfig
from engine.reasoning.pruning.judge import Judging, Trace
from engine.reasoning.pruning.rehearsal import Whole


class Replayed(NamedTuple):
    """`kept` traces went on to their ends; `tokens`: of all, the pruned ones up to the judge."""

    clusters: list[list[int]]
    kept: list[int]
    answer: str
    tokens: int


def scored(judging: Judging, question: str, begun: Sequence[Trace]) -> np.ndarray:
    """score_NN[i, j] of every trace j against every earlier one i; NaN elsewhere."""
    score_NN = np.full((len(begun), len(begun)), np.nan)
    for j in range(1, len(begun)):
        score_NN[:j, j] = judging.agree(question, begun[:j], begun[j])
    judging.forget()
    return score_NN


def replay(
    config: PruningConfig, rule: Clustering, number: int, traces: Sequence[Whole],
    score_NN: np.ndarray,
) -> Replayed:  # fmt: skip
    """The question of a number, whose traces come in the order of its threads."""
    clusters: Clusters[int] = Clusters(rule, Random(f"{config.seed} {number}"))
    kept, tokens = [], 0
    for j, trace in enumerate(traces):
        place, _ = clusters.place(j, partial(_column, score_NN, j))
        over = len(trace.tokens) <= config.after  # has ended before it could be judged
        if over or len(clusters.groups[place]) <= config.keep:
            kept.append(j)
            tokens += len(trace.tokens)
        else:
            tokens += config.after
    said = ([traces[j].answer if j in kept else None for j in group] for group in clusters.groups)
    return Replayed(clusters.groups, kept, vote(ballots(said, config.weighted)), tokens)


def _column(score_NN: np.ndarray, trace: int, others: list[int]) -> list[float]:
    found: list[float] = score_NN[others, trace].tolist()
    return found
