"""Log-probabilities of a prompt: of each of its tokens, its rank and the likeliest beside it."""

from dataclasses import dataclass

import numpy as np


@dataclass(slots=True)
class PromptScores:
    """What the model makes of N tokens of a prompt, those from position `start` on; K likeliest
    beside each. What nobody has scored (as a prompt's first token) is NaN, of rank 0."""

    start: int
    logprobs_N: np.ndarray  # float64
    ranks_N: np.ndarray  # int32; 1: the likeliest
    tokens_NK: np.ndarray  # int32, likeliest first; -1: none
    values_NK: np.ndarray  # float64, their log-probabilities

    def put(self, part: "PromptScores") -> None:
        """Take in what is known of some of the same tokens."""
        first = part.start - self.start
        at = slice(first, first + len(part.logprobs_N))
        self.logprobs_N[at], self.ranks_N[at] = part.logprobs_N, part.ranks_N
        self.tokens_NK[at], self.values_NK[at] = part.tokens_NK, part.values_NK


def unscored(start: int, count: int, tops: int) -> PromptScores:
    """Nothing known yet of `count` tokens."""
    nothing_NK = np.full((count, tops), np.nan)
    tokens_NK = np.full((count, tops), -1, np.int32)
    return PromptScores(
        start, np.full(count, np.nan), np.zeros(count, np.int32), tokens_NK, nothing_NK
    )
