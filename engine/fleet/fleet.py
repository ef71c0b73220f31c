"""Fleet: requests through a router to replicas, from pool to pool over links, past what fails.

Every request that arrives is, at every moment, finished, refused or in exactly one place: waiting
for a replica, on one, or on its way between two.
"""

from collections.abc import Callable

from engine.core.events import AnyEvent, Mark
from engine.fleet.autoscaler import Autoscaler
from engine.fleet.beginnings import Beginnings
from engine.fleet.built import Built
from engine.fleet.config import FleetConfig
from engine.fleet.fetches import Fetches
from engine.fleet.journey import Journey, Recovery
from engine.fleet.life import (
    DECODE,
    ENDED,
    FINISHED,
    PREFILL,
    REFUSED,
    RETRIES,
    STATE,
    Counts,
    Life,
    Lives,
)
from engine.fleet.migration import leaving
from engine.fleet.pools.pools import Place
from engine.fleet.recording import Recording
from engine.fleet.replica import Replica
from engine.fleet.timeline import Timeline
from engine.fleet.transfers import Wires
from engine.inference.requests.request import Request
from engine.inference.running import pages_for
from engine.kernels.draws import seed_of

AWAY = "router", "fetch", "link"  # where a request is on no replica


class Fleet:
    """Call `arrive` with requests in order of arrival, then `advance` until it returns False."""

    def __init__(self, config: FleetConfig, built: Built, emit: Callable[[AnyEvent], None]) -> None:
        self.config, self.built, self.emit = config, built, emit
        self.timeline = Timeline()
        self.wires = Wires(built.link, config.bandwidth, built.layers, config.faults)
        self.lives: dict[str, Life] = {}  # of requests under way, by id
        self.rows = Lives()  # of all
        self.recording = Recording(emit, config.record_every, self.timeline, self.lives)
        self.journeys: dict[str, Journey] = {}
        self.homeless: list[Journey] = []  # while no replica is alive
        self.waiting: dict[int, list[tuple[Journey, int]]] = {}  # for room, by decoding replica
        self.finished = self.refused = 0
        self.lost_tokens = 0  # known to replicas that died: computed again
        self.replicas = [self._replica(number) for number in range(config.replicas)]
        given = built, self.timeline, self.replicas, self.recording, config.engine.page_size
        self.fetches = Fetches(*given, self._give)
        scaled = config.scaling, self.replicas, self.timeline, self.journeys, emit
        self.scaler = Autoscaler(*scaled, self._changed)
        self.alive = self.scaler.serving()
        self.beginnings = Beginnings(config.router)
        self.recovery, self.moving = Recovery(config.faults.kill_at), config.router.moving
        if config.faults.kill >= 0:
            self.timeline.at(config.faults.kill_at, self._kill, config.faults.kill)

    def _replica(self, number: int) -> Replica:
        config, watched = self.config, number == self.config.watch
        engine = config.engine
        if watched and config.tokens and config.watch_every:
            engine = engine.model_copy(update={"profile_every": config.watch_every})
        return Replica(
            number, config.pools.role(number, config.replicas), engine,
            self.built.executor(number), self.timeline, self.lives,
            self._entered, self._freed, self._awaited, self.recording.heard,
            tokens=config.tokens, watched=watched,
            slower=config.pace * config.faults.slower(number),
        )  # fmt: skip

    @property
    def counts(self) -> Counts:
        """Requests by where they stand; those under way are counted one by one."""
        under_way = sum(len(replica.given) for replica in self.replicas)
        under_way += sum(each.where in AWAY for each in self.journeys.values())
        return Counts(len(self.rows), self.finished, self.refused, under_way)

    def advance(self) -> bool:
        """Let the next thing happen; False once nothing will."""
        if self.timeline.advance():
            return True
        for journey in list(self.homeless):
            self._refuse(journey, "no replica is alive, and none comes back")
        return False

    def arrive(self, request: Request, number: int) -> None:
        """A request comes now: it is sent to a replica."""
        request.id = request.id or f"r{number}"
        given = self.timeline.now, len(request.prompt), request.sampling.max_tokens
        row = self.lives[request.id] = self.rows.begin(*given)
        if request.sampling.seed is None:  # the same tokens wherever it is served
            request.seed = seed_of(self.config.engine.seed, number)
        journey = Journey(request, number, row, request.prompt)
        self.journeys[request.id] = journey
        self.recording.state(journey, "queued")
        self._route(journey, journey.tries)

    def _route(self, journey: Journey, tries: int) -> None:
        if tries != journey.tries or journey.where != "router":
            return
        config, loads = self.config, self.alive
        if not loads:
            self.homeless.append(journey)
            return
        why = self.built.refusal(len(journey.known) + journey.left, config.engine)
        if why:
            self._refuse(journey, why)
            return
        journey.key = self.beginnings.key(journey.known, len(loads))
        asked = journey.asking(config.engine.seed, self.timeline.now)
        journey.place = config.pools.place(asked, loads, config.replicas, config.router)
        if journey.left == 1:  # there is no second token to decode
            journey.place = Place(journey.place.prefill, journey.place.prefill)
        journey.row[PREFILL], journey.row[DECODE] = journey.place
        apart = journey.place.prefill != journey.place.decode
        journey.where = "prefill" if apart else "decode"
        self.recording.asked(journey, "router", self.replicas[journey.place.prefill].name)
        if not self.fetches.begin(journey):
            self._give(journey)

    def _give(self, journey: Journey, fetched: int = 0) -> None:
        """The replica that computes its prompt gets it, with the cache of so many tokens of it."""
        apart = journey.where == "prefill"
        one = journey.request(1 if apart else journey.left, self._ended)
        if apart:
            one.on_token = self._first_token
        if fetched:
            one.sent_pages, one.computed, journey.fetched = journey.fetched, fetched, None
        self.replicas[journey.place.prefill].give(one, len(journey.known) - fetched)

    def _entered(self, name: str) -> None:
        """A request begins to run: the place that its cache will be sent to is kept, if there is
        any, so that layers can be sent as they come."""
        journey = self.journeys[name]
        journey.begun_at = self.timeline.now
        self._recovered(name)
        if journey.where == "prefill":
            self._keep(journey)

    def _keep(self, journey: Journey) -> bool:
        """Keep pages at the decoding replica; whether they are kept now."""
        if journey.kept is None:
            target = self.replicas[journey.place.decode]
            more = journey.where == "prefill"  # its first token is still to come
            journey.kept = target.reserve(journey.asked.id, len(journey.known) + more)
            journey.kept_at = self.timeline.now
        return journey.kept is not None

    def _first_token(self, request: Request, token: int, text: str, logprob: float) -> None:
        """The prompt is computed: its pages are held until they are sent."""
        journey = self.journeys[request.id]
        engine = self.replicas[journey.place.prefill].engine
        rows = engine.scheduler.rows
        count = pages_for(len(journey.known), rows.page_size)
        journey.sent = rows.table(request.row)[:count].copy()
        engine.cache.share(f"{request.id} out", journey.sent)

    def _ended(self, request: Request) -> None:
        """A replica is done with its part of a request, or refuses it."""
        journey = self.journeys[request.id]
        place = journey.place
        here = self.replicas[place.decode if journey.where == "decode" else place.prefill]
        here.over(request)
        if request.state != "finished":
            if request.sent_pages is not None:
                here.release(request.id, request.sent_pages)
            self._refuse(journey, request.reason)
            return
        journey.known = request.tokens
        self.fetches.keep(journey, here.number)
        if journey.where == "prefill":
            journey.where = "link"
            self._send(journey, journey.tries)
            return
        self.finished += 1
        self._over(journey, FINISHED)
        self.recording.state(journey, "finished", request.reason)

    def _send(self, journey: Journey, tries: int) -> None:
        """Its cache goes to the decoding replica, once that has room for it."""
        if tries != journey.tries:
            return
        if not self.replicas[journey.place.decode].load.alive:
            journey.let_go(self.replicas)
            self._begin_again(journey, 0.0, f"replica {journey.place.decode} died")
            return
        if not self._keep(journey):
            self.waiting.setdefault(journey.place.decode, []).append((journey, tries))
            return
        now, prompt = self.timeline.now, len(journey.known) - 1
        size = self.built.bytes_per_page * pages_for(prompt, self.config.engine.page_size)
        layered = self.config.pools.layered(prompt)
        computing = max(journey.begun_at, journey.kept_at)
        sent = self.wires.send(
            *journey.place, size, now, computing if layered and computing < now else None
        )
        if sent.cut:
            text = f"request {journey.asked.id}: its cache is sent again, the link was cut"
            self.emit(Mark(now, "links", "cut", text))
        self.timeline.at(sent.stop, self._arrived, journey, tries, sent.start, size)

    def _freed(self, number: int) -> None:
        """A replica may have room for caches that wait for it; those who wait on it may leave."""
        for journey, tries in self.waiting.pop(number, []):
            self._send(journey, tries)
        if not self.moving:
            return
        here, config = self.replicas[number], self.config
        given = here, self.replicas, self.alive, self.journeys, config.router, config.engine.seed
        for journey, load in leaving(*given):
            apart = journey.where == "prefill"
            journey.place = Place(load.number, journey.place.decode if apart else load.number)
            journey.row[PREFILL], journey.row[DECODE] = journey.place
            self.recording.asked(journey, here.name, self.replicas[load.number].name)
            self._give(journey)

    def _awaited(self, number: int) -> bool:
        """Whether `_freed` may do something at the end of each of a replica's steps."""
        if self.moving and len(self.replicas[number].engine.scheduler.queue):
            return True
        return number in self.waiting

    def _arrived(self, journey: Journey, tries: int, start: float, size: float) -> None:
        """Its cache is there: the decoding replica goes on from the first token."""
        if tries != journey.tries:
            return
        source, target = (self.replicas[number] for number in journey.place)
        self.recording.moved(journey, source.name, target.name, size, start)
        journey.let_go(self.replicas)
        one = journey.request(journey.left, self._ended)
        one.sent_pages, one.computed = journey.kept, len(journey.known) - 1
        journey.kept, journey.where = None, "decode"
        target.give(one, 1)

    def _refuse(self, journey: Journey, why: str) -> None:
        self.refused += 1
        if journey in self.homeless:
            self.homeless.remove(journey)
        self._over(journey, REFUSED)
        self.recording.state(journey, "rejected", why)

    def _over(self, journey: Journey, state: float) -> None:
        journey.row[ENDED], journey.row[STATE] = self.timeline.now, state
        journey.where = "over"
        self._recovered(journey.asked.id)
        self.rows.end(journey.row)
        del self.journeys[journey.asked.id], self.lives[journey.asked.id]

    def _kill(self, number: int) -> None:
        """A replica dies: what it had, and what was on its way to or from it, is begun again."""
        replica, faults = self.replicas[number], self.config.faults
        self.alive = [load for load in self.alive if load is not replica.load]
        known = {request.id: request.tokens for request in replica.die()}
        again = []
        for journey in self.journeys.values():
            if journey.where == "prefill" and journey.place.decode == number:
                journey.kept = None  # its prompt goes on; another decodes it
            elif journey.asked.id in known or journey.on_its_way(number):
                journey.known = known.get(journey.asked.id, journey.known)
                self.lost_tokens += len(journey.known)
                journey.survivor_frees(number, self.replicas)
                again.append(journey)
        now, lost = self.timeline.now, f"{len(again)} requests; {self.lost_tokens} tokens lost"
        self.emit(Mark(now, replica.name, "died", f"{replica.name} died with {lost}"))
        self.recovery.of({journey.asked.id for journey in again})
        for journey in again:
            self._begin_again(journey, faults.notice, f"{replica.name} died")
        if faults.back_after:
            self.timeline.at(now + faults.back_after, self.scaler.back, number)

    def _begin_again(self, journey: Journey, after: float, why: str) -> None:
        """A request looks for a replica once more, with the tokens that it has."""
        journey.tries += 1
        journey.where = "router"
        journey.row[RETRIES] += 1
        self.recording.state(journey, "preempted", why)
        self.timeline.at(self.timeline.now + after, self._route, journey, journey.tries)

    def _changed(self) -> None:
        """Others take requests from now on."""
        self.alive = self.scaler.serving()
        homeless, self.homeless = self.homeless, []
        for journey in homeless:
            self.timeline.at(self.timeline.now, self._route, journey, journey.tries)

    def _recovered(self, name: str) -> None:
        """A request runs, or is over: say so if it is the last that waited for that."""
        text = self.recovery.runs(name, self.timeline.now)
        if text:
            self.emit(Mark(self.timeline.now, "router", "recovered", text))
