"""Modelled drafts: which of a step's drafts are right, and how long drafting them would take.

A drafted token is right with one probability, if those before it were; whether it is depends on its
request's seed and position alone. Shape letters: D sequences that decode.
"""

from collections.abc import Callable

import numpy as np

from engine.inference.executors.costs.ranked_step_cost import Cost
from engine.inference.requests.step import Step
from engine.kernels.draws import GOLDEN

MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
Tokens = Callable[[np.ndarray, np.ndarray], np.ndarray]  # seeds, tokens known -> next tokens


class Drafting:
    """Drafts of `acceptance`, by a model whose passes `cost` so much; without one they are free.

    `per_pass`: seconds of sampling and scheduling each of a draft model's passes.
    """

    def __init__(
        self, acceptance: float, vocab: int, cost: Cost | None = None, per_pass: float = 0.0
    ) -> None:
        self.acceptance, self.vocab = acceptance, vocab
        self.cost, self.per_pass = cost, per_pass
        self.per_token = 0.0  # bytes of a token in the draft's cache

    def draft(self, step: Step, tokens: Tokens) -> float:
        """Write the step's drafts into their rows; the seconds that takes.

        `tokens` says what the target itself would say.
        """
        if step.drafts_B is None or not len(step.rows_B):
            return self._seconds(step, 0)
        longest, rows = int(step.drafts_B.max()), step.rows
        for ahead in range(longest):
            rows_D = step.rows_B[step.drafts_B > ahead]
            seed_D, known_D = rows.seed[rows_D], rows.known[rows_D] + ahead
            right_D = tokens(seed_D, known_D)
            wrong_D = ~self._right(seed_D, known_D)
            right_D[wrong_D] = (right_D[wrong_D] + 1) % self.vocab
            rows.tokens[rows_D, known_D] = right_D
        return self._seconds(step, longest)

    def _right(self, seed_D: np.ndarray, known_D: np.ndarray) -> np.ndarray:
        mixed = (seed_D.astype(np.uint64) ^ (known_D.astype(np.uint64) * np.uint64(GOLDEN))) + 1
        for _ in range(2):
            mixed ^= mixed >> np.uint64(31)
            mixed *= MULTIPLIER
        return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < self.acceptance

    def _seconds(self, step: Step, longest: int) -> float:
        """What the step computes anyway, drafts apart, then a pass for each further draft."""
        cost = self.cost
        if cost is None or not len(step.rows_B):
            return 0.0
        drafts_B = np.zeros_like(step.queries_B) if step.drafts_B is None else step.drafts_B
        new_B = step.queries_B - drafts_B
        shape = cost.shape(new_B, step.starts_B + new_B, int(np.count_nonzero(drafts_B)))
        seconds = cost.total(shape)[0] + self.per_pass
        for ahead in range(1, longest):
            those = drafts_B > ahead
            starts = step.rows.known[step.rows_B[those]] + ahead - 1
            seconds += cost.total(cost.decode_shape(starts, len(starts)))[0] + self.per_pass
        return seconds
