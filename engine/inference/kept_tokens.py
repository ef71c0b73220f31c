"""Kept tokens: what requests of a real run were made of once they have ended, beside its log.

Prompt and answer as token ids, so that a reader can put them through the model once more. Of a
client with a key of its own (a salt) nothing is kept; the oldest go once there are many.
"""

from collections.abc import Mapping

import numpy as np

from engine.inference.requests.request import Request

PREFIX = "tokens/"  # of the names of blobs that are a request's tokens
MOST = 1 << 20  # tokens kept in all, unless one request alone has more


class KeptTokens:
    """Puts tokens of ended requests into a log's `blobs`."""

    def __init__(self, blobs: dict[str, np.ndarray]) -> None:
        self.blobs = blobs
        self._names: dict[str, None] = {}  # the oldest first
        self._held = 0

    def keep(self, request: Request) -> None:
        """Keep a request that has ended."""
        if request.salt:
            return
        name, tokens = PREFIX + request.id, np.asarray(request.tokens, np.int32)
        self._drop(name)
        self.blobs[name] = tokens
        self._names[name] = None
        self._held += len(tokens)
        while self._held > MOST and len(self._names) > 1:
            self._drop(next(iter(self._names)))

    def _drop(self, name: str) -> None:
        if name in self._names:  # of half a million, where requests are of a token or two
            del self._names[name]
            self._held -= len(self.blobs.pop(name))


def kept(blobs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tokens of each request that has them, by its id, the oldest first."""
    found = [(name, blobs[name]) for name in list(blobs) if name.startswith(PREFIX)]
    return {name.removeprefix(PREFIX): tokens for name, tokens in found}
