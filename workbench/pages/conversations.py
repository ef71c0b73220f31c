"""What a live page asked and what came back so far; the engine's thread writes, the page reads."""

from collections import deque
from dataclasses import dataclass, field

from engine.inference.requests.request import Sampling
from workbench.live.live import LiveEngine
from workbench.live.pieces import Piece
from workbench.live.ticket import Ticket

KEEP = 60  # answers remembered


@dataclass(eq=False)
class Conversation:
    """One answer growing. `thread` is its request's id, once the engine has given one."""

    prompt: str
    ticket: Ticket | None = None
    index: int = 0
    parts: list[str] = field(default_factory=list)
    reason: str = ""
    refused: str = ""

    @property
    def thread(self) -> str:
        if self.ticket is None or not self.ticket.request.id:
            return ""
        name = self.ticket.request.id
        return f"{name}.{self.index}" if self.index else name

    @property
    def text(self) -> str:
        return "".join(self.parts)


class Conversations:
    """Asks a live engine and collects the answers, newest first in `latest`."""

    def __init__(self, live: LiveEngine) -> None:
        self.live = live
        self.all: deque[Conversation] = deque(maxlen=KEEP)
        self.version = 0

    def ask(self, prompt: str, sampling: Sampling) -> None:
        """Hand in a prompt. Raises BadInput, then nothing was asked."""
        made = [Conversation(prompt, index=place) for place in range(sampling.n)]

        def tell(piece: Piece) -> None:
            talk = made[piece.index]
            talk.parts.append(piece.text)
            talk.reason, talk.refused = piece.reason, piece.refused
            self.version += 1

        ticket = self.live.ask(self.live.prompts.encode(prompt), sampling, tell, user="page")
        for talk in made:
            talk.ticket = ticket
            self.all.append(talk)
        self.version += 1

    @property
    def running(self) -> int:
        return sum(not talk.reason for talk in self.all)

    def latest(self, count: int) -> list[Conversation]:
        """Those still going first, the newest first among them."""
        newest = list(self.all)[::-1]
        return sorted(newest, key=lambda talk: bool(talk.reason))[:count]

    def stop(self) -> None:
        """End every answer that is still going."""
        for talk in list(self.all):
            if not talk.reason and talk.ticket is not None:
                self.live.abort(talk.ticket)
