"""Rows of logits at blocks of masks: what a model says may stand at each of their places.

A guided block has a second pass of its text, with the negative prompt in the prompt's place (for
masked diffusion Nie et al., arXiv 2410.18514), over the same pages: nothing of them is kept.

Shape letters: W rows wanted, L of them of one block, V vocabulary, T tokens, B texts, P pages.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from engine.inference.requests.step import Step
from engine.models.batch import Batch, both_ways


class CanvasRows:
    """Rows of a step's batch that have a block of masks."""

    def __init__(self, step: Step, batch: Batch) -> None:
        """Asks `batch` for the logits at their blocks, after all others."""
        self.step = step
        self.spans: list[tuple[int, slice]] = []  # row of the persistent batch, and of the logits
        at, self.count = [], 0
        for b in () if step.canvases_C is None else step.canvases_C.tolist():
            row, first = int(step.rows_B[b]), int(step.queries_B[:b].sum())
            own = np.arange(step.rows.prompt[row], step.rows.known[row], dtype=np.int32)
            self.spans.append((row, slice(self.count, self.count + len(own))))
            self.count += len(own)
            at.append(first + own)
        if at:
            batch.logits_at_R = np.concatenate([batch.logits_at_R, *at]).astype(np.int32)

    def said(
        self, logits_WV: np.ndarray, forward: Callable[[Batch], Tensor]
    ) -> dict[int, np.ndarray]:
        """By row of the persistent batch p_LV in float64, each place by itself. `forward`: a pass
        over the same pages."""
        requests = self.step.requests
        guided = [span for span in self.spans if requests[span[0]].sampling.guidance != 1.0]
        if guided:
            negative_WV = forward(self._negative([row for row, _ in guided])).cpu().numpy()
        done = 0
        for row, span in guided:
            own_LV, weight = logits_WV[span], requests[row].sampling.guidance
            apart_LV = negative_WV[done : done + len(own_LV)]
            logits_WV[span] = apart_LV + weight * (own_LV - apart_LV)
            done += len(own_LV)
        found = {row: torch.from_numpy(logits_WV[span]) for row, span in self.spans}
        return {row: own_LV.double().softmax(-1).numpy() for row, own_LV in found.items()}

    def _negative(self, guided: list[int]) -> Batch:
        """The texts of these rows behind their negative prompts, every token a sequence."""
        rows, size = self.step.rows, self.step.rows.page_size
        tokens, wanted, first = [], [], 0
        for row in guided:
            negative, block = self.step.requests[row].negative, slice(*self._block(row))
            assert negative is not None
            tokens.append(np.concatenate([negative, rows.tokens[row, block]]))
            wanted.append(first + np.arange(len(negative), len(tokens[-1])))
            first += len(tokens[-1])
        lengths_B = np.array([len(text_T) for text_T in tokens])
        pages = [rows.tables[row, : rows.pages[row]] for row in guided]
        said = np.concatenate(tokens), 0 * lengths_B, lengths_B, lengths_B
        return both_ways(*said, pages, size, np.concatenate(wanted))

    def _block(self, row: int) -> tuple[int, int]:
        return int(self.step.rows.prompt[row]), int(self.step.rows.known[row])
