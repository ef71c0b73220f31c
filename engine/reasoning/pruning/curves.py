"""Curves of judges over the same traces, all let finish: accuracy against tokens, and the ROC."""

from collections.abc import Callable, Sequence

import numpy as np

from engine.core.config import update
from engine.reasoning.pruning.agreement import pairs_of, roc
from engine.reasoning.pruning.clustering import vote
from engine.reasoning.pruning.config import PruningConfig
from engine.reasoning.pruning.judge import Judge, Judging, Trace
from engine.reasoning.pruning.judges.oracle import Oracle
from engine.reasoning.pruning.judges.shared_prefix import SharedPrefix
from engine.reasoning.pruning.rehearsal import Whole
from engine.reasoning.pruning.replay import replay, scored
from engine.reasoning.threads.mind import Mind
from engine.tasks.task import Problem

SPENT, TOLD = "accuracy", "ROC of agreement"
FACTS = {
    SPENT: {"x": "tokens generated (share of all traces')", "y": "questions right", "zero": False},
    TOLD: {"x": "pairs that differ, said to agree", "y": "pairs that agree, said to"},
}
THRESHOLDS = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
NAMES = {"trained": "trained judge", "shared_prefix": "shared prefix", "oracle": "oracle",
         "edit_distance": "edit distance"}  # fmt: skip
Report = Callable[[str, float, float], None]


def curves(
    config: PruningConfig,
    asked: Sequence[tuple[int, Problem]],
    whole: Sequence[Sequence[Whole]],
    mind: Mind,
    report: Report,
) -> dict[str, np.ndarray]:
    """Blobs by name for the view of curves."""
    assert mind.tokenizer is not None
    decode = mind.tokenizer.decode
    answers = {trace.name: trace.answer for traces in whole for trace in traces}
    judges: dict[str, Judge] = {j.kind: j for j in (config.judge, SharedPrefix(), Oracle())}
    found: dict[str, np.ndarray] = {}
    for place, (kind, judge) in enumerate(judges.items()):
        report("comparing judges", place, len(judges))
        judging = judge.open(lambda: answers)
        tables = [
            table(config, judging, problem, traces, decode)
            for (_, problem), traces in zip(asked, whole, strict=True)
        ]
        name = NAMES.get(kind, kind)
        found[f"curve/{SPENT}/{name}"] = spent(config, asked, whole, tables)
        if kind != "oracle":
            found[f"curve/{TOLD}/{name}"] = told(whole, tables)
    right = sum(is_right(consensus(traces), traces) for traces in whole)
    share = right / len(asked)
    found[f"curve/{SPENT}/vote of all traces (bound)"] = np.array([[0.0, 1.0], [share, share]])
    found[f"curve/{TOLD}/by chance (bound)"] = np.array([[0.0, 1.0], [0.0, 1.0]])
    return found


def table(
    config: PruningConfig, judging: Judging, problem: Problem, traces: Sequence[Whole],
    decode: Callable[[list[int]], str],
) -> np.ndarray:  # fmt: skip
    """score_NN of a question's traces, cut where the judge is asked."""
    partial = [Trace(t.name, decode(t.tokens[: config.after])) for t in traces]
    return scored(judging, problem.prompt, partial)


def spent(
    config: PruningConfig, asked: Sequence[tuple[int, Problem]],
    whole: Sequence[Sequence[Whole]], tables: Sequence[np.ndarray],
) -> np.ndarray:  # fmt: skip
    """[2, thresholds]: share of all tokens that are generated, share of questions right."""
    every = sum(len(trace.tokens) for traces in whole for trace in traces)
    points = set()
    for threshold in THRESHOLDS:
        rule = update(config.clustering, {"threshold": threshold})
        ends = [
            replay(config, rule, number, traces, table_NN)
            for (number, _), traces, table_NN in zip(asked, whole, tables, strict=True)
        ]
        right = sum(is_right(o.answer, traces) for o, traces in zip(ends, whole, strict=True))
        points.add((sum(one.tokens for one in ends) / every, right / len(asked)))
    return np.array(sorted(points)).T


def told(whole: Sequence[Sequence[Whole]], tables: Sequence[np.ndarray]) -> np.ndarray:
    """[2, points] of the ROC over all pairs."""
    pairs = [pairs_of(*one) for one in zip(whole, tables, strict=True)]
    return roc(*(np.concatenate(arrays) for arrays in zip(*pairs, strict=True)))


def is_right(answer: str, traces: Sequence[Whole]) -> bool:
    """Whether traces with this answer were right."""
    return any(trace.right for trace in traces if trace.answer == answer)


def consensus(traces: Sequence[Whole]) -> str:
    """The vote of all traces, let finish."""
    return vote([(trace.answer, 1.0) for trace in traces])
