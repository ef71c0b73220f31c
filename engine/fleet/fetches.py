"""Fetches of a fleet from its pooled cache: before a prompt is computed, what others computed of it
comes over the bus; after, its own pages are kept there."""

from collections.abc import Callable, Sequence

from engine.fleet.built import Built
from engine.fleet.journey import Journey
from engine.fleet.recording import Recording
from engine.fleet.replica import Replica
from engine.fleet.timeline import Timeline

POOL = "pool"  # in moves


class Fetches:
    """`give`: told of each journey whose pages have come, and how many tokens they hold."""

    def __init__(
        self, built: Built, timeline: Timeline, replicas: Sequence[Replica], recording: Recording,
        page_size: int, give: Callable[[Journey, int], None],
    ) -> None:  # fmt: skip
        self.pooled = built.pooled() if built.pooled else None
        self.page_bytes, self.page_size = built.bytes_per_page, page_size
        self.timeline, self.replicas, self.recording = timeline, replicas, recording
        self.give = give

    def begin(self, journey: Journey) -> bool:
        """Fetch what the pool has of a prompt and its replica has not; False where that is nothing,
        or there is no room for it."""
        if self.pooled is None:
            return False
        replica, known = self.replicas[journey.place.prefill], journey.known
        pages = self.pooled.found(known, replica.number)
        if pages * self.page_size <= replica.load.found(known):
            return False
        journey.fetched = replica.reserve(journey.asked.id, pages * self.page_size)
        if journey.fetched is None:
            return False
        where, journey.where = journey.where, "fetch"
        size = pages * self.page_bytes
        sent = self.pooled.fetch(known, replica.number, size, self.timeline.now)
        self.timeline.at(sent.stop, self._came, journey, journey.tries, where, sent.start, size)
        return True

    def _came(self, journey: Journey, tries: int, where: str, start: float, size: float) -> None:
        if tries != journey.tries:
            return
        journey.where = where
        replica = self.replicas[journey.place.prefill]
        self.recording.moved(journey, POOL, replica.name, size, start)
        assert journey.fetched is not None
        self.give(journey, len(journey.fetched) * self.page_size)

    def keep(self, journey: Journey, replica: int) -> None:
        """A replica writes to the pool what it computed of a journey; its last token is not."""
        if self.pooled is not None:
            known = journey.known[:-1]
            self.pooled.keep(known, replica, self.page_bytes, self.timeline.now)
