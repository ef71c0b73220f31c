"""One replica of a fleet's run: what the watched one did, as if it were a serving engine alone.

The fleet is played whole; the log keeps the requests that came to this replica, from when they came
until they ended or were sent on, with its pages, levels and steps.
"""

from collections.abc import Callable

from msgspec.structs import replace

from engine.core.config import Config, update
from engine.core.errors import BadInput
from engine.core.events import AnyEvent, Branch, Level, Mark, Move, Opened, Page, Span, Token
from engine.core.run import Driver, Live
from engine.fleet.config import FleetConfig

ENGINE = "engine"  # the lane of a single engine's steps and levels
OF_FLEET = (
    "fleet", "roles", "power", "columns", "replica_columns", "thinned", "record_every",
)  # fmt: skip


class OneReplica:
    """Hears a fleet's events and passes on those of the replica called `name`."""

    def __init__(self, name: str, emit: Callable[[AnyEvent], None]) -> None:
        self.name, self.emit = name, emit
        self.here: set[str] = set()  # requests that it has

    def __call__(self, event: AnyEvent) -> None:
        match event:
            case Opened():
                facts = {key: value for key, value in event.facts.items() if key not in OF_FLEET}
                self.emit(replace(event, facts=facts))
            case Move():
                self._moved(event)
            case Branch():
                if event.thread in self.here:
                    self.emit(event)
                if event.state in ("finished", "rejected", "aborted"):
                    self.here.discard(event.thread)
            case Token():
                if event.thread in self.here:
                    self.emit(event)
            case Level() | Mark():
                if event.lane == self.name:
                    self.emit(replace(event, lane=ENGINE))
            case Span():
                self._worked(event)
            case Page():  # of the watched one alone
                self.emit(event)

    def _moved(self, event: Move) -> None:
        if event.target == self.name:
            self.here.add(event.tag)
            self.emit(Branch(event.time, event.tag, "", "queued", f"from the {event.source}"))
        elif event.tag in self.here:
            self.here.discard(event.tag)
            self.emit(Branch(event.time, event.tag, "", "finished", f"sent to {event.target}"))

    def _worked(self, span: Span) -> None:
        """Its steps and operations, and prompts of its requests; no other replica's."""
        if span.lane == self.name:
            self.emit(replace(span, lane=ENGINE))
        elif span.lane in self.here or "of=step" in span.tag:
            self.emit(span)


def watched(config: Config) -> FleetConfig:
    """The fleet with all of its watched replica recorded. Raises BadInput where that is none."""
    if not isinstance(config, FleetConfig):
        raise BadInput("replica: this study has no fleet; choose one that has")
    if not 0 <= config.watch < config.replicas:
        raise BadInput(f"watch: replica {config.watch}, there are {config.replicas}")
    return update(config, {"tokens": True, "record_every": 1})


def of_replica(driver: Driver) -> Driver:
    """A driver that plays a fleet by `driver` and records the replica that is watched."""

    def run(config: Config, live: Live) -> None:
        one = watched(config)
        live.emit = OneReplica(f"replica {one.watch}", live.emit)
        driver(one, live)

    return run
