"""Log-probabilities of prompts: the rows of logits that score a prompt's own tokens.

The logits after one token of a prompt score the next. Shape letters: W rows wanted, V vocabulary,
N of them of one prompt, K likeliest tokens.
"""

import numpy as np

from engine.inference.executors.tensors.sampler import top
from engine.inference.requests.prompt_scores import PromptScores, unscored
from engine.inference.requests.step import Step
from engine.models.batch import Batch

BLOCK = 1 << 20  # logits in float64 at once


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
                first = int(step.queries_B[:b].sum())  # drafts may be sequences of their own
                at.append(np.arange(first, first + stop - start, dtype=np.int32))
        self.count = sum(map(len, at))
        if at:
            batch.logits_at_R = np.concatenate([batch.logits_at_R, *at]).astype(np.int32)

    def scores(self, logits_WV: np.ndarray) -> dict[int, PromptScores]:
        """By row of the batch."""
        found: dict[int, PromptScores] = {}
        done = 0
        for row, start, stop in self.spans:
            tokens_N = self.step.rows.tokens[row, start + 1 : stop + 1]
            logits_NV = logits_WV[done : done + stop - start]
            tops = min(self.step.requests[row].prompt_tops, logits_WV.shape[1])
            found[row] = made = unscored(start + 1, stop - start, tops)
            height = max(1, BLOCK // logits_WV.shape[1])
            for at in range(0, stop - start, height):
                rows = slice(at, at + height)
                made.put(_scored(logits_NV[rows], tokens_N[rows], start + 1 + at, tops))
            done += stop - start
        return found


def _scored(logits_NV: np.ndarray, tokens_N: np.ndarray, start: int, tops: int) -> PromptScores:
    """What these logits make of these tokens, which stand from `start` on."""
    count, every_N = len(tokens_N), np.arange(len(tokens_N))
    made = unscored(start, count, tops)
    own_N, best_N = logits_NV[every_N, tokens_N], logits_NV.max(1)
    wide_NV = logits_NV.astype(np.float64)
    wide_NV -= best_N[:, None]
    totals_N = best_N + np.log(np.exp(wide_NV, out=wide_NV).sum(1))
    made.logprobs_N[:] = own_N - totals_N
    made.ranks_N[:] = 1 + (logits_NV > own_N[:, None]).sum(1)
    if tops:
        made.tokens_NK, kept_NK = _likeliest(logits_NV, tops)
        made.values_NK = kept_NK - totals_N[:, None]
    return made


def _likeliest(logits_NV: np.ndarray, tops: int) -> tuple[np.ndarray, np.ndarray]:
    """The likeliest tokens of each row and their logits, as `top` orders them."""
    count, vocab = logits_NV.shape
    tokens_NK = np.full((count, tops), -1, np.int32)
    kept_NK = np.full((count, tops), np.nan)
    least_N = np.partition(logits_NV, vocab - tops, 1)[:, vocab - tops]
    enough_NV = logits_NV >= least_N[:, None]
    plain_N = enough_NV.sum(1) == tops
    columns_MK = enough_NV[plain_N].nonzero()[1].reshape(-1, tops)
    values_MK = np.take_along_axis(logits_NV[plain_N], columns_MK, 1)
    order_MK = np.argsort(-values_MK, axis=1, kind="stable")
    tokens_NK[plain_N] = np.take_along_axis(columns_MK, order_MK, 1)
    kept_NK[plain_N] = np.take_along_axis(values_MK, order_MK, 1)
    for n in (~plain_N).nonzero()[0].tolist():  # several are the last, or a number is none
        for k, (token, value) in enumerate(top(logits_NV[n], 0.0, tops)):
            tokens_NK[n, k] = token
            kept_NK[n, k] = value + float(logits_NV[n].max())
    return tokens_NK, kept_NK
