"""Replica: one engine of a fleet, stepping on the fleet's clock, with its events and its load.

It is the single engine's own scheduler and cache over a modelled executor; a step begins when the
one before is done, or when something to do arrives.
"""

from collections.abc import Callable

import numpy as np

from engine.core.events import AnyEvent, Branch, Level, Mark, Page, Span
from engine.fleet.life import COMPUTED, FIRST, STARTED, Life
from engine.fleet.operations import operations
from engine.fleet.pools.pools import Role
from engine.fleet.routers.router import Load
from engine.fleet.timeline import Timeline
from engine.inference.config import InferenceConfig
from engine.inference.decode_run import DecodeRun
from engine.inference.engine import Begun, Engine
from engine.inference.executors.executor import Executor
from engine.inference.requests.request import Request
from engine.inference.running import pages_for

Emit = Callable[[AnyEvent], None]


class Replica:
    """`number` of a fleet. `lives`: rows of requests by id.

    `entered` hears who begins to run, `freed` that pages may have become free; `awaited` says
    whether that matters to anybody at the end of each step. Where it does not, and no tokens are
    told, decoding steps are taken by runs.
    """

    def __init__(
        self,
        number: int,
        role: Role,
        config: InferenceConfig,
        executor: Executor,
        timeline: Timeline,
        lives: dict[str, Life],
        entered: Callable[[str], None],
        freed: Callable[[int], None],
        awaited: Callable[[int], bool],
        emit: Emit,
        *,
        tokens: bool,
        watched: bool,
        slower: float = 1.0,
    ) -> None:
        self.number, self.role, self.name = number, role, f"replica {number}"
        self.config, self.executor, self.timeline, self.lives = config, executor, timeline, lives
        self.entered, self.freed, self.awaited, self._emit = entered, freed, awaited, emit
        self.tokens, self.watched, self.slower = tokens, watched, slower
        self.load = Load(number, self._found)
        self.busy = 0.0  # seconds of its steps
        self.steps = 0
        self.prefilled = 0  # prompt tokens computed
        self.decoded = 0  # answers' tokens that came from decoding
        self.given: dict[str, Request] = {}  # those it has, by id
        self._ahead: dict[str, int] = {}  # tokens of each that its load counts
        self._begun: Begun | None = None
        self._run: DecodeRun | None = None  # in place of a step that has begun
        self._late: list[Request] = []  # who came during a run's last step
        self._life = 0  # how often it died; what was planned before means nothing after
        self._woken = False
        self._start()

    def _start(self) -> None:
        self.engine = Engine(
            self.config, self.executor, self.timeline.clock, self._hear, quiet=not self.tokens
        )

    def _found(self, prompt: np.ndarray) -> int:
        """Tokens of `prompt` that its prefix tree holds."""
        if self._run is not None:
            self.engine.runs.look(self._run, self._run.done(self.timeline.now))
        size = self.config.page_size
        return size * len(self.engine.cache.tree.match(prompt, "", (len(prompt) - 1) // size))

    def give(self, request: Request, to_compute: int) -> None:
        """`request` is its own from now on, with so many tokens before its next one."""
        self.given[request.id] = request
        self._ahead[request.id] = to_compute
        self.load.requests += 1
        self.load.tokens += to_compute
        run = self._run
        if run is None:
            self.engine.add(request)
        elif self._late or not self.engine.runs.full or self.awaited(self.number):
            self._late.append(request)
            if run.shorten(self.timeline.now):
                self.timeline.at(run.ends[-1], self._end_run, run)
        else:
            self.engine.add(request)
            self.engine.hear_in_run(run, self.timeline.now)
        self.wake()

    def _add_late(self) -> None:
        """Those who came while a run's last step was under way wait from the next one on."""
        for request in self._late:
            self.engine.add(request)
        self._late.clear()

    def over(self, request: Request) -> None:
        """`request` is its own no more."""
        if self.given.pop(request.id, None) is not None:
            self.load.requests -= 1
            self.load.tokens -= self._ahead.pop(request.id)

    def withdraw(self, request: Request) -> bool:
        """`request` goes elsewhere before it has begun; False where it is too late."""
        self._cut()
        if request.sent_pages is not None or not self.engine.intake.withdraw(request):
            return False
        self.over(request)
        return True

    def wake(self) -> None:
        """Something may be to do; others of this moment come first."""
        idle = self._begun is None and self._run is None
        if idle and not self._woken and self.load.alive:
            self._woken = True
            self.timeline.at(self.timeline.now, self._begin, self._life)

    def settle(self) -> None:
        """Its steps may take another time from the next one on."""
        self._cut()

    def reserve(self, owner: str, tokens: int) -> np.ndarray | None:
        """Pages for `tokens` tokens that another replica sends; None while there is no room."""
        self._cut()
        count = pages_for(tokens, self.config.page_size)
        if not self.load.alive or count > self.engine.cache.available:
            return None
        return self.engine.cache.take(owner, count)

    def release(self, owner: str, pages: np.ndarray) -> None:
        """`owner` needs `pages` no more; whoever waited for room is woken."""
        self._cut()
        self.engine.cache.drop(owner, pages)
        self.freed(self.number)
        self.wake()

    def die(self) -> list[Request]:
        """It stops in the middle of its step; returns what it had, each with its known tokens."""
        self._cut()
        rows, lost = self.engine.scheduler.rows, list(self.given.values())
        for request in lost:
            if request.row >= 0:
                request.tokens = rows.tokens[request.row, : rows.known[request.row]].copy()
            self.over(request)
        self.load.alive = False
        self._life += 1
        self._begun, self._woken = None, False
        for name in ("running", "waiting", "pages_used", "pages_cached", "tokens_step"):
            self._hear(Level(self.timeline.now, "engine", name, 0.0))
        return lost

    def revive(self) -> None:
        """It is back, with an empty cache."""
        self._start()
        self.load.alive = True
        self.wake()

    def _begin(self, life: int) -> None:
        if life != self._life:
            return
        self._woken = False
        if not self.tokens and not self.awaited(self.number):
            run = self._run = self.engine.begin_run(self.slower)
            if run is not None:
                self.timeline.at(run.ends[-1], self._end_run, run)
                return
        begun = self._begun = self.engine.begin()
        if begun is None:
            return
        step = begun.step
        if step.prefill_tokens:
            names, first = self.engine.scheduler.running.names, step.decodes
            for row, count in zip(
                step.rows_B[first:].tolist(), step.queries_B[first:].tolist(), strict=True
            ):
                self._computes(names[row], count)
        seconds = begun.result.seconds * self.slower
        for span in operations(begun, self.slower, self.executor.facts):
            self.timeline.at(span.time, self._tell_part, self._life, span)
        self.timeline.at(begun.start + seconds, self._end, self._life)

    def _tell_part(self, life: int, span: Span) -> None:
        if life == self._life and self.watched:
            self._emit(span)

    def _cut(self) -> None:
        """A run, if there is one, becomes the step of it that is under way."""
        run, clock = self._run, self.timeline.clock
        if run is None:
            return
        self._run, now = None, clock.time
        done = run.done(now)
        self._tell_run(run, done)
        self.engine.take_run(run, done)
        clock.time = run.start(done)  # the step under way began then, by what stood then
        begun = self._begun = self.engine.begin()
        clock.time = now
        self._add_late()
        assert begun is not None
        self.timeline.at(begun.start + begun.result.seconds * self.slower, self._end, self._life)

    def _end_run(self, run: DecodeRun) -> None:
        if run is not self._run:
            return
        self._run = None
        self._tell_run(run, len(run.ends))
        self.engine.end_run(run)
        self._add_late()
        self.freed(self.number)
        self._begin(self._life)

    def _tell_run(self, run: DecodeRun, steps: int) -> None:
        """The first `steps` of a run count."""
        start = run.begin
        for end in run.ends[:steps]:
            self.busy += end - start
            start = end
        self.steps += steps
        self.decoded += steps * self.engine.scheduler.rows.count

    def _computes(self, name: str, count: int) -> None:
        """`count` tokens of the prompt of `name` are part of the step."""
        self.lives[name][COMPUTED] += count
        self.prefilled += count
        left = min(count, self._ahead[name])
        self._ahead[name] -= left
        self.load.tokens -= left

    def _end(self, life: int) -> None:
        begun = self._begun
        if life != self._life or begun is None:
            return
        step, now = begun.step, self.timeline.now
        self.busy += now - begun.start
        self.steps += 1
        self.decoded += step.decodes
        if step.prefill_tokens:
            names = self.engine.scheduler.running.names
            for row in step.sample_rows_S[step.decodes :].tolist():
                name = names[row]
                self.load.tokens -= self._ahead[name]  # what it found in the cache
                self._ahead[name] = 0
                row_of = self.lives[name]
                if row_of[FIRST] != row_of[FIRST]:
                    row_of[FIRST] = now
        self.engine.end(begun)
        self._begun = None
        self.freed(self.number)
        self._begin(self._life)

    def _hear(self, event: AnyEvent) -> None:
        """What the engine tells: as a replica of several, and only what is asked for."""
        kind = type(event)
        if kind is Branch:
            self._changed(event)  # type: ignore[arg-type]
        elif not self.tokens:
            return
        elif kind is Level:
            self._emit(Level(event.time, self.name, event.name, event.value))  # type: ignore[union-attr]
        elif kind is Span:
            self._worked(event)  # type: ignore[arg-type]
        elif self.watched or kind is not Page and kind is not Mark:
            self._emit(event)

    def _worked(self, span: Span) -> None:
        """Its steps, and its requests' prompts. Operations have lanes that are nobody's: of several
        replicas they would lie on one another."""
        if span.lane == "engine":
            did = span.name, span.start, span.flops, span.bytes, span.tag
            self._emit(Span(span.time, self.name, *did))
        elif self.watched or span.lane in self.given:
            self._emit(span)

    def _changed(self, event: Branch) -> None:
        if event.state == "running":
            row = self.lives[event.thread]
            if row[STARTED] != row[STARTED]:
                row[STARTED] = event.time
            self.entered(event.thread)
        elif event.state in ("finished", "queued"):
            return  # the fleet says so: a phase of a request is not all of it
        self._emit(event)
