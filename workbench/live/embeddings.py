"""Embeddings asked of a live engine: prompts in, one vector each, between the steps of decoding.

A prompt is computed by itself, in memory of its own: nobody's pages are taken for it, and whoever
decodes waits as long as its forward pass takes.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.inference.outputs import LOST

Given = Callable[[np.ndarray | None, str], None]  # the vector, or why there is none


class Embeddings:
    """Prompts wait here, from any thread, for the engine's."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Sequence[int], Given]] = deque()

    def ask(self, tokens: Sequence[int], given: Given) -> None:
        """Hand in one prompt; `given` is called from the engine's thread."""
        self._waiting.append((tokens, given))

    def step(self, executor: Any) -> bool:
        """Compute the first that waits, if any does."""
        if not self._waiting:
            return False
        tokens, given = self._waiting.popleft()
        embed = getattr(executor, "embed", None)
        if embed is None:
            given(None, "this model's executor gives no hidden states; serve one of tensors")
        else:
            vector_C = embed(np.asarray(tokens, np.int32))
            whole = bool(np.isfinite(vector_C).all())
            given(vector_C if whole else None, "" if whole else LOST)
        return True

    def refuse(self, why: str) -> None:
        """Nobody who waits gets one."""
        while self._waiting:
            self._waiting.popleft()[1](None, why)
