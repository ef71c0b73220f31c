"""Accounts of users: tokens computed for each, where the ordering goes by them.

A newcomer starts level with whoever was served least, of those whose accounts were let go too: who
comes back after that is as a newcomer, and has no more than a new name would give.
"""

from collections.abc import Callable, Collection

import numpy as np

KEPT = 1024  # accounts of users who have no request here; twice as many before any is let go


class Accounts:
    """Tokens computed for each user. Of those who are not `present`, the lowest are let go.

    `present`: gives the users who wait or run.
    """

    def __init__(self, present: Callable[[], Collection[str]]) -> None:
        self.present = present
        self.served: dict[str, float] = {}
        self.slots: dict[str, int] = {}  # user -> number, by which rows name them
        self.names: dict[int, str] = {}  # and back
        self.free: list[int] = []  # numbers of accounts let go
        self.least = float("inf")  # that was served to any of those

    def comes(self, user: str) -> None:
        """A request of `user` waits: a newcomer starts level with whoever was served least, not
        with a head start."""
        if user in self.served:
            return
        if len(self.served) >= 2 * KEPT:
            self._let_go()
        least = min(self.least, *self.served.values()) if self.served else 0.0
        self.served[user] = least

    def slot(self, user: str) -> int:
        """The number of `user`, who is present."""
        if user not in self.slots:
            number = self.free.pop() if self.free else len(self.slots)
            self.slots[user], self.names[number] = number, user
        return self.slots[user]

    def charge(self, slots_B: np.ndarray, tokens_B: np.ndarray) -> None:
        """Count so many tokens to the users of these numbers."""
        counts = np.bincount(slots_B, weights=tokens_B)
        for number in counts.nonzero()[0].tolist():
            user = self.names[number]
            self.served[user] = self.served.get(user, 0.0) + float(counts[number])

    def _let_go(self) -> None:
        present = set(self.present())
        away = sorted(set(self.served) - present, key=self.served.__getitem__)
        for user in away[: max(0, len(away) - KEPT)]:
            self.least = min(self.least, self.served.pop(user))
            number = self.slots.pop(user, None)
            if number is not None:
                del self.names[number]
                self.free.append(number)
