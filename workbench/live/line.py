"""Line: prompts that wait to be handed to the engine, some of them between each two steps.

One call may ask for 64 prompts of 64 answers each. Were they handed in at once, whoever decodes
would wait for a tenth of a second, and whoever came behind them for as many steps as they take
where it is first come, first served.
"""

from collections import deque
from collections.abc import Iterator

from workbench.live.ticket import Ticket

AT_ONCE = 256  # answers that begin to wait in the engine, or are given up, between two steps


class Line:
    """Tickets in the order they came. Not safe by itself: whoever shares it has a lock."""

    def __init__(self) -> None:
        self._tickets: dict[Ticket, None] = {}

    def append(self, ticket: Ticket) -> None:
        self._tickets[ticket] = None

    def withdraw(self, ticket: Ticket) -> bool:
        """It waits no more; whether it did."""
        return self._tickets.pop(ticket, self) is None

    def come(self) -> list[Ticket]:
        """Who is handed in now: all, where that is little work, else the first, then those of the
        fewest answers."""
        tickets, left, found = list(self._tickets), AT_ONCE, []
        if sum(map(_answers, tickets)) > AT_ONCE:
            tickets[1:] = sorted(tickets[1:], key=_answers)
        for ticket in tickets:
            if left <= 0:
                break
            left -= _answers(ticket)
            del self._tickets[ticket]
            found.append(ticket)
        return found

    def clear(self) -> None:
        self._tickets.clear()

    def __len__(self) -> int:
        return len(self._tickets)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._tickets)


class Leaving:
    """Tickets to give up, from any thread."""

    def __init__(self) -> None:
        self._tickets: deque[Ticket] = deque()
        self.append, self.extend = self._tickets.append, self._tickets.extend

    def go(self) -> Iterator[Ticket]:
        """Some of them: as little work as who comes."""
        left = AT_ONCE
        while self._tickets and left > 0:
            ticket = self._tickets.popleft()
            left -= _answers(ticket)
            yield ticket


def _answers(ticket: Ticket) -> int:
    return ticket.request.sampling.n
