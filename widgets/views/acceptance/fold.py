"""Fold of verifications: of each, when it was, whose, how many drafts it judged by and kept.

In come `Token` events, refused drafts among them; out go arrays with a row for each verification of
a request that had drafts. Tokens of a request that came at one moment are one verification's: the
drafts that held, those refused, the target's own. Which place a refused draft of a tree had is not
told: of trees it is known how many drafts held, and how many were made.
"""

from array import array
from typing import Any, Self

import numpy as np

from engine.core.events import AnyEvent, Closed, Opened, Span, Token
from widgets.fold import Fold, nothing

EMPTY = "No drafts yet. Start a run that speculates: what its target keeps of them shows here."
NAMES = ("time", "kept", "drafted")


class AcceptanceFold(Fold):
    """Frame: time_V (seconds), kept_V, drafted_V, `owners` of each, `trees` (whether drafts stand
    in any), `modelled`, `empty`."""

    def __init__(self) -> None:
        self.time, self.kept, self.drafted = array("d"), array("q"), array("q")
        self.owners: list[str] = []
        self.open: dict[str, tuple[float, int, int]] = {}  # thread -> when, said, refused
        self.verifies = self.trees = self.modelled = self.opened = self.closed = False

    def add(self, event: AnyEvent) -> None:
        match event:
            case Token():
                time, said, refused = self.open.get(event.thread, (event.time, 0, 0))
                if time != event.time:
                    self._close(event.thread)
                    time, said, refused = event.time, 0, 0
                refused += not event.accepted
                self.trees = self.trees or event.branch > 0
                self.open[event.thread] = time, said + event.accepted, refused
                self.verifies = self.verifies or not event.accepted
            case Span(lane="verify"):
                self.verifies = True
            case Opened():
                self.opened, self.modelled = True, event.clock == "virtual"
            case Closed():
                self.closed = True

    def _close(self, thread: str) -> None:
        row = self._row(self.open[thread])
        if row is not None:
            self.time.append(row[0])
            self.kept.append(row[1])
            self.drafted.append(row[2])
            self.owners.append(thread)

    @staticmethod
    def _row(group: tuple[float, int, int]) -> tuple[float, int, int] | None:
        """When, drafts kept, drafts made; None of a step that had none."""
        time, said, refused = group
        kept = max(0, said - 1)
        return (time, kept, kept + refused) if kept + refused else None

    def frame(self) -> dict[str, Any]:
        more = {name: row for name, group in self.open.items() if (row := self._row(group))}
        known = zip(self.time, self.kept, self.drafted, strict=True)
        columns = list(np.array([*known, *more.values()], np.float64).reshape(-1, 3).T)
        owners = [*self.owners, *more]
        if not self.verifies:  # tokens of one moment, of something else
            columns, owners = [column[:0] for column in columns], []
        told = "" if owners else nothing(EMPTY, self.opened, self.closed)
        return {
            **dict(zip(NAMES, columns, strict=True)),
            "owners": owners,
            "trees": self.trees,
            "modelled": self.modelled,
            "empty": told,
        }

    def copy(self) -> Self:
        other = type(self)()
        other.__dict__.update(self.__dict__)
        other.time, other.kept, other.drafted = self.time[:], self.kept[:], self.drafted[:]
        other.owners, other.open = self.owners[:], dict(self.open)
        return other
