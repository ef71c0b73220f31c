"""Log-probabilities of prompts: the rows of logits that score a prompt's own tokens.

The logits after one token of a prompt score the next. Shape letters: W rows wanted, V vocabulary.
"""

import numpy as np

from engine.inference.executors.tensors.sampler import top
from engine.inference.requests.request import PromptScore
from engine.inference.requests.step import Step
from engine.models.batch import Batch


class PromptRows:
    """Rows of a step's batch whose requests ask what the model makes of their prompt."""

    def __init__(self, step: Step, batch: Batch) -> None:
        """Asks `batch` for their logits, after all others."""
        self.step = step
        self.spans: list[tuple[int, int, int]] = []  # row, first position, one past the last
        at = []
        for b in range(step.decodes, len(step.rows_B)):
            row, start = int(step.rows_B[b]), int(step.starts_B[b])
            stop = min(start + int(step.queries_B[b]), int(step.rows.prompt[row]) - 1)
            if step.requests[row].prompt_tops >= 0 and start < stop:
                self.spans.append((row, start, stop))
                first = int(batch.query_start_B1[b])
                at.append(np.arange(first, first + stop - start, dtype=np.int32))
        self.count = sum(map(len, at))
        if at:
            batch.logits_at_R = np.concatenate([batch.logits_at_R, *at]).astype(np.int32)

    def scores(self, logits_WV: np.ndarray) -> dict[int, dict[int, PromptScore]]:
        """By row of the batch and position of the prompt."""
        found: dict[int, dict[int, PromptScore]] = {}
        done = 0
        for row, start, stop in self.spans:
            tops = self.step.requests[row].prompt_tops
            tokens = self.step.rows.tokens[row]
            found[row] = {
                position + 1: _score(logits_V, int(tokens[position + 1]), tops)
                for position, logits_V in enumerate(logits_WV[done : done + stop - start], start)
            }
            done += stop - start
        return found


def _score(logits_V: np.ndarray, token: int, tops: int) -> PromptScore:
    wide_V = logits_V.astype(np.float64)
    best = float(wide_V.max())
    total = best + float(np.log(np.exp(wide_V - best).sum()))
    rank = 1 + int((logits_V > logits_V[token]).sum())
    likeliest = top(logits_V, best - total, tops) if tops else []
    return PromptScore(float(wide_V[token]) - total, rank, likeliest)
