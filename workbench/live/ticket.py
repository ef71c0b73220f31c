"""Ticket: one prompt handed to a live engine, with who hears of its answers."""

import time
from collections.abc import Iterable
from typing import Any

from engine.inference.requests.guide import TANGLED
from engine.inference.requests.request import Request
from workbench.live.pieces import LATE, PromptFacts, Tell


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

    def why(self, request: Request) -> str:
        """Why one of its answers is none, in one line; empty where it is whole or was given up."""
        broken = request.guide is not None and request.guide.broken
        return TANGLED if broken else self.refused

    def scores(self, text: Any) -> list[PromptFacts] | None:
        """What the model makes of the prompt's tokens, named by `text`; None if nobody asked."""
        request = self.request
        if request.prompt_tops < 0:
            return None
        found: list[PromptFacts] = []
        for position, token in enumerate(request.prompt.tolist()):
            score, name = request.prompt_scores.get(position), text([token])
            if score is None:  # nothing comes before the first
                found.append(PromptFacts(token, name, None, 0, []))
                continue
            tops = [(top, text([top]), value) for top, value in score.tops]
            found.append(PromptFacts(token, name, score.logprob, score.rank, tops))
        return found


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
