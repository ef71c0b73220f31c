"""`Allowance`: what one person's study pages may take of a server together, so that it is there for
others too.

Runs beyond the allowance are ended, those first that nobody has touched for longest, and their
pages say so; a page whose run had to go altogether starts it again when a knob is turned.
"""

import threading
from collections.abc import Sequence

from engine.core.errors import BadInput
from workbench.session import Session

PAGES = 12  # study pages open at once
GOING = 4  # runs under way at once
EVENTS = 6_000_000  # kept in the runs of all of one's pages; about 150 bytes each
AGAIN = "Turn a knob here to run again."
LEFT = f"Stopped: newer pages took the room of this one, which no browser held. {AGAIN}"


def is_room(sessions: Sequence[Session], most: int) -> bool:
    """Whether fewer than `most` pages take room, once those that no browser holds made it, the
    oldest first: a page that was left or reloaded is known to its server for a while yet."""
    for session in sessions:
        if _taking(sessions) >= most and not session.watched():
            session.let_go(LEFT)
    return _taking(sessions) < most


class Allowance:
    """The sessions of one person's open pages."""

    def __init__(self) -> None:
        self.sessions: list[Session] = []
        self._lock = threading.Lock()

    def check_room(self) -> None:
        """Raises BadInput where as many pages are open as one person may have."""
        if not is_room(self.sessions, PAGES):
            raise BadInput(
                f"study: {PAGES} pages of yours are open already; close one, then reload"
            )

    def enter(self, session: Session) -> None:
        """A page shows this session from now on."""
        self.sessions.append(session)
        session.begun = lambda: self.make_room(session)
        session.full = lambda: self.is_full
        self.make_room(session)

    def leave(self, session: Session) -> None:
        """Its page has gone."""
        if session in self.sessions:
            self.sessions.remove(session)

    def make_room(self, newest: Session) -> None:
        """End or let go what is too much now that `newest` has begun a run."""
        with self._lock:
            others = sorted((s for s in self.sessions if s is not newest), key=_touched)
            going = [session for session in others if session.is_going]
            for session in going[: max(0, len(going) + newest.is_going - GOING)]:
                session.end(f"Stopped: {GOING} newer runs of yours are under way. {AGAIN}")
            self._shed([*others, newest], list(others))

    def _shed(self, everyone: Sequence[Session], others: Sequence[Session]) -> None:
        """Drop runs that only wait to be compared, then the others' present ones."""
        for session in everyone:
            while _events(everyone) > EVENTS and session.drop_oldest():
                pass
        for session in others:
            if _events(everyone) > EVENTS and session.run is not None:
                session.let_go(f"Your other pages needed the room that this run took. {AGAIN}")

    @property
    def is_full(self) -> bool:
        """Whether no run may grow any more."""
        return _events(self.sessions) > EVENTS


def _taking(sessions: Sequence[Session]) -> int:
    return sum(session.watched() or session.run is not None for session in sessions)


def _touched(session: Session) -> float:
    return session.turned


def _events(sessions: Sequence[Session]) -> int:
    return sum(session.events for session in sessions)
