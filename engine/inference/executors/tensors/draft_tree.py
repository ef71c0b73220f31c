"""Draft tree: what a draft model's logits make of it, level by level.

Shape letters: K drafts of the tree, R rows of logits, V vocabulary.
"""

import numpy as np


class DraftTree:
    """A tree of at most as many drafts as there are places, written where they are to be verified.

    Of all that may follow a level's tokens the `width` likeliest are the next level, by the product
    of the probabilities along their path (as EAGLE-2 grows its trees, Li et al., arXiv 2406.16858).
    """

    def __init__(self, parents_K: np.ndarray, tokens_K: np.ndarray, width: int) -> None:
        self.parents_K, self.tokens_K, self.width = parents_K, tokens_K, width
        self.count = 0
        self.level: list[tuple[float, int]] = [(0.0, -1)]  # log-probability and place of its nodes

    def grow(self, logits_RV: np.ndarray) -> list[int]:
        """The next level, from logits after each draft of the last; the drafts to go on from.

        None where no place is left.
        """
        room = len(self.parents_K) - self.count
        if not room:
            return []
        found: list[tuple[float, int, int]] = []
        for (before, node), logits_V in zip(self.level, logits_RV, strict=True):
            best = np.argpartition(-logits_V, min(self.width, len(logits_V) - 1))[: self.width]
            highest = float(logits_V.max())
            total = highest + float(np.log(np.exp(logits_V - highest, dtype=np.float64).sum()))
            found += [(total - float(logits_V[t]) - before, node, int(t)) for t in best.tolist()]
        self.level = []
        for doubt, node, token in sorted(found)[: min(self.width, room)]:
            self.parents_K[self.count], self.tokens_K[self.count] = node, token
            self.level.append((-doubt, self.count))
            self.count += 1
        return [node for _, node in self.level] if self.count < len(self.parents_K) else []
