"""Modelled drafts: which of a step's drafts are right, and how long drafting them would take.

A drafted token is right with one probability, if those before it were, and one beside it with
another, if that one is not; which is depends on its request's seed and position alone.
Shape letters: D sequences that decode, K drafts of one, N drafts of all.
"""

from collections.abc import Callable
from functools import cache

import numpy as np

from engine.inference.executors.costs.ranked_step_cost import Cost
from engine.inference.requests.step import Step
from engine.kernels.draws import GOLDEN

MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
Tokens = Callable[[np.ndarray, np.ndarray], np.ndarray]  # seeds, tokens known -> next tokens


class Drafting:
    """Drafts of `acceptance`, by a model whose passes `cost` so much; without one they are free.

    `per_pass`: seconds of sampling and scheduling each of a draft model's passes. Of trees `width`
    drafts stand side by side, and `second` of those beside a wrong one are right.
    """

    def __init__(
        self, acceptance: float, vocab: int, cost: Cost | None = None, per_pass: float = 0.0,
        width: int = 1, second: float = 0.0,
    ) -> None:  # fmt: skip
        self.acceptance, self.vocab, self.width, self.second = acceptance, vocab, width, second
        self.cost, self.per_pass = cost, per_pass
        self.per_token = 0.0  # bytes of a token in the draft's cache

    def draft(self, step: Step, tokens: Tokens) -> float:
        """Write the step's drafts into their rows; the seconds that takes.

        `tokens` says what the target itself would say.
        """
        if step.drafts_B is None or not len(step.rows_B):
            return self._seconds(step, 0)
        longest, rows = int(step.drafts_B.max()), step.rows
        if step.parents_N is not None:
            return self._trees(step, tokens)
        for ahead in range(longest):
            rows_D = step.rows_B[step.drafts_B > ahead]
            seed_D, known_D = rows.seed[rows_D], rows.known[rows_D] + ahead
            right_D = tokens(seed_D, known_D)
            wrong_D = self._draws(seed_D, known_D) >= self.right(seed_D)
            right_D[wrong_D] = (right_D[wrong_D] + 1) % self.vocab
            rows.tokens[rows_D, known_D] = right_D
        return self._seconds(step, longest)

    def right(self, seed_D: np.ndarray) -> np.ndarray:
        """The probability of a draft of each request to be right if those before it were."""
        return np.full(len(seed_D), self.acceptance)

    def hits(self, seed_S: np.ndarray, known_S: np.ndarray) -> np.ndarray | None:
        """Which samples an early exit of the target foresaw; None: nobody asks one."""
        return None

    def beside(self, step: Step, seconds: float) -> tuple[float, tuple[float, float]]:
        """A pass that takes the target `seconds`, with what is drafted beside it: its seconds, and
        those after which that begins and ends."""
        return seconds, (0.0, 0.0)

    def _trees(self, step: Step, tokens: Tokens) -> float:
        """The same of trees: of the drafts side by side at most one is right."""
        drafts_B, parents_N, rows = step.drafts_B, step.parents_N, step.rows
        assert drafts_B is not None and parents_N is not None
        longest = int(drafts_B.max())
        parents_K, depth_K, rank_K = grown(longest, self.width, self.acceptance, self.second)
        which_N = np.repeat(np.arange(len(drafts_B)), drafts_B)
        place_N = np.arange(len(which_N)) - (np.cumsum(drafts_B) - drafts_B)[which_N]
        parents_N[:] = parents_K[place_N]
        row_N, rank_N = step.rows_B[which_N], rank_K[place_N]
        known_N = rows.known[row_N] + depth_K[place_N]
        right_N, draws_N = tokens(rows.seed[row_N], known_N), self._draws(rows.seed[row_N], known_N)
        # The first right one: as many before it are wrong as its rank says.
        first_N = self.right(rows.seed[row_N])
        missed_N = (1 - first_N) * (1 - self.second) ** np.maximum(rank_N - 1, 0)
        below_N = np.where(rank_N > 0, 1 - missed_N, 0.0)
        share_N = np.where(rank_N > 0, missed_N * self.second, first_N)
        wrong_N = (draws_N < below_N) | (draws_N >= below_N + share_N)
        right_N[wrong_N] = (right_N[wrong_N] + 1 + rank_N[wrong_N]) % self.vocab
        rows.tokens[row_N, rows.known[row_N] + place_N] = right_N
        return self._seconds(step, int(depth_K.max()) + 1, depth_K)

    def _draws(self, seed_D: np.ndarray, known_D: np.ndarray) -> np.ndarray:
        """A number from 0 to 1 for each seed and position, float64."""
        mixed = (seed_D.astype(np.uint64) ^ (known_D.astype(np.uint64) * np.uint64(GOLDEN))) + 1
        for _ in range(2):
            mixed ^= mixed >> np.uint64(31)
            mixed *= MULTIPLIER
        return np.asarray((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53)

    def _seconds(self, step: Step, longest: int, depth_K: np.ndarray | None = None) -> float:
        """What the step computes anyway, drafts apart, then a pass for each further draft, or
        for each level of a tree."""
        cost = self.cost
        if cost is None or not len(step.rows_B):
            return 0.0
        drafts_B = np.zeros_like(step.queries_B) if step.drafts_B is None else step.drafts_B
        new_B = step.queries_B - drafts_B
        shape = cost.shape(new_B, step.starts_B + new_B, int(np.count_nonzero(drafts_B)))
        seconds = cost.total(shape)[0] + self.per_pass
        for ahead in range(1, longest):
            if depth_K is None:
                many_B = (drafts_B > ahead).astype(np.int64)
            else:  # the drafts of the level before
                level = np.append(0, np.cumsum(depth_K == ahead - 1))
                many_B = level[drafts_B]
            starts = np.repeat(step.rows.known[step.rows_B] + ahead - 1, many_B)
            if len(starts):
                seconds += cost.total(cost.decode_shape(starts, len(starts)))[0] + self.per_pass
        return seconds


@cache
def grown(
    count: int, width: int, first: float, second: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """parents_K, depth_K and rank_K among its siblings of a tree of `count` drafts.

    Level by level, as a drafting model grows it, the `width` likeliest of what may follow the
    level before, where the first after a token is right with one probability and each further one
    with the other if those before it are wrong.
    """
    parents: list[int] = []
    depth: list[int] = []
    rank: list[int] = []
    level = [(1.0, -1)]
    while len(parents) < count:
        found = sorted(
            (
                -before * (first if not r else (1 - first) * (1 - second) ** (r - 1) * second),
                r,
                node,
            )
            for before, node in level
            for r in range(width)
        )[: min(width, count - len(parents))]
        # A draft comes after those beside it that are likelier, whatever ties make of it.
        deeper = 0 if level[0][1] < 0 else depth[level[0][1]] + 1
        level = []
        for doubt, r, node in found:
            level.append((-doubt, len(parents)))
            parents.append(node)
            depth.append(deeper)
            rank.append(r)
    return tuple(np.array(column, np.int32) for column in (parents, depth, rank))  # type: ignore[return-value]
