"""Rows of logits at blocks of masks: what a model says may stand at each of their places.

Shape letters: W rows wanted, L of them of one block, V vocabulary.
"""

import numpy as np
import torch

from engine.inference.requests.step import Step
from engine.models.batch import Batch


class CanvasRows:
    """Rows of a step's batch that have a block of masks."""

    def __init__(self, step: Step, batch: Batch) -> None:
        """Asks `batch` for the logits at their blocks, after all others."""
        self.spans: list[tuple[int, int]] = []  # row of the persistent batch, places
        at = []
        for b in () if step.canvases_C is None else step.canvases_C.tolist():
            row, first = int(step.rows_B[b]), int(step.queries_B[:b].sum())
            own = np.arange(step.rows.prompt[row], step.rows.known[row], dtype=np.int32)
            self.spans.append((row, len(own)))
            at.append(first + own)
        self.count = sum(map(len, at))
        if at:
            batch.logits_at_R = np.concatenate([batch.logits_at_R, *at]).astype(np.int32)

    def said(self, logits_WV: np.ndarray) -> dict[int, np.ndarray]:
        """By row of the persistent batch p_LV in float64, each place by itself."""
        found, done = {}, 0
        for row, places in self.spans:
            own = torch.from_numpy(logits_WV[done : done + places])
            found[row] = own.double().softmax(-1).numpy()
            done += places
        return found
