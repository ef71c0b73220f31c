"""Ticket: one prompt handed to a live engine, with who hears of its answers."""

import time
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from engine.inference.requests.prompt_scores import PromptScores, unscored
from engine.inference.requests.request import Request
from workbench.live.pieces import LATE, PromptFacts, Said, Tell


class Ticket:
    """What `LiveEngine.abort` takes. `base`: index of its first answer; `left`: answers to end;
    `parent`: the client's span, as a traceparent header has it."""

    def __init__(self, request: Request, tell: Tell, base: int, parent: str = "") -> None:
        self.request, self.tell, self.base, self.parent = request, tell, base, parent
        self.left = request.sampling.n
        self.asked = time.monotonic()
        self.first: dict[int, float] = {}  # by answer, when its first token came
        self.last: dict[int, float] = {}  # and its last
        self.refused = ""  # why it is ended from here, in one line

    @property
    def names(self) -> list[str]:
        """Of its answers in the engine; none before it is handed in."""
        first, samples = self.request.id, self.request.sampling.n
        return [first, *(f"{first}.{number}" for number in range(1, samples))] if first else []

    def why(self, request: Request) -> str:
        """Why one of its answers is none, in one line; empty where it is whole or was given up."""
        return request.fault or self.refused

    def scores(self, text: Callable[[int], Said]) -> Iterable[PromptFacts] | None:
        """What the model makes of the prompt's tokens, named by `text`; None if nobody asked."""
        if self.request.prompt_tops < 0:
            return None
        return _Facts(self.request.prompt, self.request.prompt_scores, text)


class _Facts:
    """Each token of a prompt, as often as it is gone through; nothing comes before the first.

    None are kept: there may be a hundred thousand.
    """

    def __init__(
        self, prompt: np.ndarray, scores: PromptScores | None, text: Callable[[int], Said]
    ) -> None:
        self.prompt, self.text = prompt, text
        self.scores = scores or unscored(0, len(prompt), 0)

    def __iter__(self) -> Iterator[PromptFacts]:
        scores, text = self.scores, self.text
        columns = self.prompt, scores.logprobs_N, scores.ranks_N
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for place, (token, logprob, rank) in enumerate(rows):
            tops = _tops(scores.tokens_NK[place], scores.values_NK[place], text)
            yield PromptFacts(token, text(token), logprob if rank else None, rank, tops)


def _tops(
    tokens_K: np.ndarray, values_K: np.ndarray, text: Callable[[int], Said]
) -> Iterator[tuple[int, Said, float]]:
    for token, value in zip(tokens_K.tolist(), values_K.tolist(), strict=True):
        if token >= 0:
            yield token, text(token), value


def place_of(request: Request) -> int:
    """Which of a prompt's answers this is, from 0 on."""
    return int(request.id.rpartition(".")[2]) if request.parent else 0


def overdue(tickets: Iterable[Ticket], patience: float) -> list[Ticket]:
    """Those that have waited `patience` seconds for their first token; each says so once."""
    asked = time.monotonic() - patience
    found = [t for t in tickets if t.asked < asked and not t.last and not t.refused and t.left]
    for ticket in found:
        ticket.refused = LATE
    return found
