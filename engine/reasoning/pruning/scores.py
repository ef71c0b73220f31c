"""What became of each question of a run of pruned traces, as arrays beside its log.

Shape letters: P questions, N traces of each.
"""

from dataclasses import dataclass, field

import numpy as np

from engine.reasoning.pruning.questions import Pruning, Question


@dataclass(slots=True)
class Scores:
    """Questions that are over, in the order of their numbers once told as arrays."""

    traces: int
    rows: dict[int, dict[str, list[float]]] = field(default_factory=dict)
    ids: dict[str, int] = field(default_factory=lambda: {"": -1})  # of answers

    @property
    def done(self) -> int:
        """Questions that are over."""
        return len(self.rows)

    @property
    def right(self) -> int:
        """Questions whose vote was right."""
        return int(sum(row["scores"][0] for row in self.rows.values()))

    def take(self, question: Question, pruning: Pruning, right: bool) -> None:
        """One more question is over."""
        answers = pruning.answers(question)
        threads, clusters = question.threads, question.clusters
        place = {thread: number for number, group in enumerate(clusters) for thread in group}
        pruned = sum(thread.state == "pruned" for thread in threads)
        said = [answers.get(thread.name, "") for thread in threads]
        numbers = [self.ids.setdefault(answer, len(self.ids) - 1) for answer in said]
        short = [-1.0] * (self.traces - len(threads))
        cost = question.cost
        self.rows[question.number] = {
            "scores": [right, question.tokens, len(clusters), pruned],
            "judge": [cost.comparisons, cost.tokens, cost.flops, question.judged],
            "answer": [*numbers, *short],
            "cluster": [*(place.get(thread, -1) for thread in threads), *short],
            "tokens": [*(len(thread.tokens) for thread in threads), *short],
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """By name: `scores_P4`, `judge_P4`, and by thread `answer_PN`, `cluster_PN`, `tokens_PN`.

        `scores_P4`: right, tokens, clusters, threads pruned. `judge_P4`: comparisons, tokens,
        flops, whether it was judged at all. Answers have equal numbers where they are equal, -1
        for none; clusters are counted as they were opened, -1 for a thread in none.
        """
        order = sorted(self.rows)
        kinds = {"scores": "P4", "judge": "P4", "answer": "PN", "cluster": "PN", "tokens": "PN"}
        return {
            f"{name}_{shape}": np.array([self.rows[number][name] for number in order], np.float64)
            for name, shape in kinds.items()
        }
