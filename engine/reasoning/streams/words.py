"""A word for each letter in each stream: whoever reads a token knows which stream it is of.

An additive stream embedding (arXiv 2605.12460) folded into the table of tokens, so that any
ordinary model and tokenizer serve: the entry `<think>7` is a 7 said in the stream `think`, and a
stream's next token is chosen among its own entries.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

import numpy as np

from engine.core.errors import BadInput


class Entries(Protocol):
    """What a tokenizer of the `tokenizers` library offers."""

    def token_to_id(self, token: str) -> int | None: ...


def words(streams: Mapping[str, str]) -> list[str]:
    """The entries of a tokenizer for streams that each use some letters."""
    return [word(name, letter) for name, letters in streams.items() for letter in letters]


def word(stream: str, letter: str) -> str:
    """How the entry of a letter in a stream is written."""
    return f"<{stream}>{letter}"


def suffix(place: int, count: int) -> str:
    """What ends the names of a problem's streams, one of so many problems."""
    return str(place) if count > 1 else ""


class StreamWords:
    """Text of streams to tokens and back. Raises BadInput where the tokenizer lacks an entry."""

    def __init__(self, entries: Entries, streams: Mapping[str, str]) -> None:
        self._ids: dict[tuple[str, str], int] = {}
        for name, letters in streams.items():
            for letter in letters:
                found = entries.token_to_id(word(name, letter))
                if found is None:
                    raise BadInput(
                        f"tokenizer: no entry {word(name, letter)}; give a model of these streams"
                    )
                self._ids[name, letter] = found
        self._letters = {token: letter for (_, letter), token in self._ids.items()}
        self._own = {name: self.encode(name, letters) for name, letters in streams.items()}

    def encode(self, stream: str, text: Iterable[str]) -> list[int]:
        """A token for each letter. Raises BadInput for a letter the stream does not use."""
        try:
            return [self._ids[stream, letter] for letter in text]
        except KeyError as fault:
            raise BadInput(f"stream {stream}: does not use {fault.args[0][1]!r}") from None

    def text(self, tokens: Iterable[int]) -> str:
        """The letters of tokens, whichever stream they are of."""
        return "".join(self._letters[int(token)] for token in tokens)

    def choose(self, stream: str, logits_V: np.ndarray) -> tuple[int, float]:
        """The stream's likeliest token and its log-probability among the stream's own."""
        own = self._own[stream]
        scores = logits_V[own].astype(np.float64)
        best = int(scores.argmax())
        return own[best], float(-np.log(np.exp(scores - scores[best]).sum()))
