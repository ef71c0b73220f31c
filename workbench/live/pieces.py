"""Pieces of a live engine's answers, and why a prompt was not taken."""

from collections.abc import Callable
from dataclasses import dataclass

from engine.core.errors import BadInput

AWAY = "the engine has been closed; ask again once the server runs"
SPENT = "the engine ran out of memory and began anew; ask again, or for less at once"


class Busy(BadInput):
    """Too many are open: the same prompt may be taken a little later."""


class Away(BadInput):
    """The engine takes nothing more: it stops, or has broken."""


TokenFacts = tuple[str, float, list[tuple[str, float]]]  # text, log-probability, likeliest


@dataclass(frozen=True)
class Piece:
    """News of one answer. `reason` ends it: stop, length, abort or error; `refused` says why not.

    `index`: which answer of the asking; `token` is None in the piece that only ends it.
    """

    index: int
    text: str = ""
    token: TokenFacts | None = None
    reason: str = ""
    refused: str = ""
    prompt_tokens: int = 0


Tell = Callable[[Piece], None]
