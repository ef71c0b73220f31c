"""Recording of a fleet's requests: events of each of them, or of one in so many."""

from collections.abc import Callable, Mapping

from engine.core.events import AnyEvent, Branch, Move
from engine.fleet.journey import Journey
from engine.fleet.life import Life
from engine.fleet.timeline import Timeline

TOKEN = 4.0  # bytes of a prompt's token on its way


class Recording:
    """Emits what becomes of requests whose number is a multiple of `every`; the rest is said of
    all."""

    def __init__(
        self, emit: Callable[[AnyEvent], None], every: int, timeline: Timeline,
        lives: Mapping[str, Life],
    ) -> None:  # fmt: skip
        """`lives`: rows of requests under way, by id."""
        self.emit, self.every, self.timeline, self.lives = emit, every, timeline, lives

    def state(self, journey: Journey, state: str, why: str = "") -> None:
        """A request is `state` from now on."""
        if journey.number % self.every == 0:
            self.emit(Branch(self.timeline.now, journey.asked.id, "", state, why))

    def asked(self, journey: Journey, source: str, target: str) -> None:
        """A request, its tokens alone, goes from `source` to `target` now."""
        self.moved(journey, source, target, TOKEN * len(journey.known), self.timeline.now)

    def moved(self, journey: Journey, source: str, target: str, size: float, start: float) -> None:
        """`size` bytes of a request have come from `source` to `target` since `start`."""
        if journey.number % self.every == 0:
            now = self.timeline.now
            self.emit(Move(now, source, target, size, start, journey.asked.id))

    def heard(self, event: AnyEvent) -> None:
        """A replica tells this."""
        if type(event) is not Branch or self.lives[event.thread].number % self.every == 0:
            self.emit(event)
