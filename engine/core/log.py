"""A run's events in emission order, appended by one driver and read by many cursors."""

from collections.abc import Iterator
from typing import TypeVar, overload

import numpy as np

from engine.core.events import AnyEvent, Closed, Event, Opened

Kind = TypeVar("Kind", bound=Event)


class Log:
    """An append-only list of events with the large arrays they refer to.

    Appending is the hot path, so `emit` is the bound `list.append` itself. Readers never block the
    writer: they keep their own position and call `since`.
    """

    def __init__(self, events: list[AnyEvent] | None = None) -> None:
        self.events: list[AnyEvent] = events if events is not None else []
        self.blobs: dict[str, np.ndarray] = {}
        self.emit = self.events.append

    def since(self, cursor: int, limit: int | None = None) -> list[AnyEvent]:
        """Events from position `cursor` on, at most `limit` of them."""
        return self.events[cursor : None if limit is None else cursor + limit]

    def of(self, kind: type[Kind]) -> list[Kind]:
        """All events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def opened(self) -> Opened | None:
        """The header, once there is one."""
        first = self.events[0] if self.events else None
        return first if isinstance(first, Opened) else None

    @property
    def closed(self) -> Closed | None:
        """The footer, once there is one."""
        last = self.events[-1] if self.events else None
        return last if isinstance(last, Closed) else None

    @property
    def duration(self) -> float:
        """Seconds from opening to the latest event."""
        return self.events[-1].time if self.events else 0.0

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[AnyEvent]:
        return iter(self.events)

    @overload
    def __getitem__(self, index: int) -> AnyEvent: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyEvent]: ...
    def __getitem__(self, index: int | slice) -> AnyEvent | list[AnyEvent]:
        return self.events[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log) or self.events != other.events:
            return False
        same = self.blobs.keys() == other.blobs.keys()
        return same and all(np.array_equal(a, other.blobs[k]) for k, a in self.blobs.items())

    __hash__ = None  # type: ignore[assignment]
