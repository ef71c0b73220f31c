"""Rows of logits that no sample is drawn from: scores of prompts, and what may stand at masks.

Shape letters: W rows wanted, V vocabulary.
"""

from collections.abc import Callable

import numpy as np
from torch import Tensor

from engine.inference.executors.tensors.canvas_rows import CanvasRows
from engine.inference.executors.tensors.prompt_rows import PromptRows
from engine.inference.requests.step import Result, Step
from engine.models.batch import Batch


class RowsBeside:
    """`count` of them, after all others."""

    def __init__(self, step: Step, batch: Batch) -> None:
        """Asks `batch` for their logits."""
        self.prompts, self.canvases = PromptRows(step, batch), CanvasRows(step, batch)
        self.count = self.prompts.count + self.canvases.count

    def put(
        self, result: Result, logits_WV: np.ndarray, forward: Callable[[Batch], Tensor]
    ) -> None:
        """What they say, into the step's result. `forward`: a pass over the same pages."""
        result.prompts = self.prompts.scores(logits_WV[: self.prompts.count])
        result.canvases = self.canvases.said(logits_WV[self.prompts.count :], forward)
