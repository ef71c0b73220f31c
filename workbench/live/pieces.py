"""Pieces of a live engine's answers, and why a prompt was not taken."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from engine.core.errors import BadInput

AWAY = "the engine has been closed; ask again once the server runs"
LATE = "the engine: no room for this prompt in the time it may wait; try again later"
SPENT = "the engine ran out of memory and began anew; ask again, or for less at once"


class Busy(BadInput):
    """Too many are open: the same prompt may be taken a little later."""


class Away(BadInput):
    """The engine takes nothing more: it stops, or has broken."""


Said = str | bytes  # of a token: bytes where it is but a part of a character


class PromptFacts(NamedTuple):
    """A token of a prompt; `logprob` is None for the first, `tops`: (token, text, logprob), made as
    they are read, once."""

    token: int
    text: Said
    logprob: float | None
    rank: int
    tops: Iterator[tuple[int, Said, float]]


# Text, log-probability, likeliest. Tuples of tuples: looks for garbage soon leave them out, and
# would stop everybody else for as long as there are lists.
TokenFacts = tuple[Said, float, tuple[tuple[Said, float], ...]]


@dataclass(frozen=True)
class Piece:
    """News of one answer. `reason` ends it: stop, length, abort or error; `refused` says why not.

    `index`: which answer of the asking; `token` is None in the piece that only ends it.
    `prompt`: the prompt's own tokens, with an answer's first token where they were asked for; to
    go through them is work of the prompt's length, for whoever reads the answer and not for the
    engine's thread.
    `cached`: tokens of the prompt that were not computed again.
    """

    index: int
    text: str = ""
    token: TokenFacts | None = None
    reason: str = ""
    refused: str = ""
    prompt_tokens: int = 0
    cached: int = 0
    prompt: Iterable[PromptFacts] | None = None


Tell = Callable[[Piece], None]
