"""Embeddings asked of a live engine: prompts in, one vector each, between the steps of decoding.

A prompt is computed by itself, in memory of its own: nobody's pages are taken for it. Whoever
decodes waits for a chunk of one prompt a step, and prompts take turns by chunks.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine.inference.requests.request import LOST

Given = Callable[[np.ndarray | None, str], None]  # the vector, or why there is none
OPEN = 4  # prompts begun and not done: each has memory of its own
ALONE, BESIDE = 512, 64  # tokens computed at once; beside others a quarter of what a step prefills


class Embeddings:
    """Prompts wait here, from any thread, for the engine's."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Sequence[int], Given]] = deque()
        self._open: deque[tuple[Any, Given]] = deque()

    def ask(self, tokens: Sequence[int], given: Given) -> None:
        """Hand in one prompt; `given` is called from the engine's thread."""
        self._waiting.append((tokens, given))

    def step(self, executor: Any, beside: bool = False) -> bool:
        """Compute a chunk of the prompt whose turn it is, if there is any; `beside` whether others
        wait for it."""
        if self._waiting and len(self._open) < OPEN:
            tokens, given = self._waiting[0]
            embed = getattr(executor, "embed", None)
            if embed is None:
                self._waiting.popleft()
                given(None, "this model's executor gives no hidden states; serve one of tensors")
                return True
            # Where memory is short, here or below, whoever asked still stands there to be told.
            self._open.appendleft((embed(np.asarray(tokens, np.int32)), given))
            self._waiting.popleft()
        if not self._open:
            return False
        embedding, given = self._open[0]
        vector_C = embedding.go_on(BESIDE if beside else ALONE)
        self._open.rotate(-1)
        if vector_C is not None:
            self._open.pop()
            whole = bool(np.isfinite(vector_C).all())
            given(vector_C if whole else None, "" if whole else LOST)
        return True

    def refuse(self, why: str) -> None:
        """Nobody who waits, or whose prompt has begun, gets one. From any thread: once the engine's
        has failed, whoever asks refuses, too."""
        for line in (self._waiting, self._open):
            while line:
                try:
                    _, given = line.popleft()
                except IndexError:  # another thread has taken the last
                    break
                given(None, why)
