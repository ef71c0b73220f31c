"""A live engine: one model decoding for whoever asks, as a run that views and servers share.

Prompts come in from any thread, pieces of answers go out through the asker's callback, and every
step becomes events of the present run. A run that has grown long gives way to a fresh one as soon
as the engine is idle, so that a server's memory stays bounded.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from engine.core.errors import BadInput
from engine.core.memory import line, refused
from engine.core.run import Live, Run, Stopped
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.executors.executor import Built
from engine.inference.intake import validate
from engine.inference.requests.request import Request, Sampling
from engine.models.text.token_bytes import said
from workbench.live.counts import Counts
from workbench.live.embeddings import Embeddings
from workbench.live.line import Leaving, Line
from workbench.live.measure_while_paused import measure_roofs
from workbench.live.pieces import AWAY, SPENT, Away, Busy, Piece, Said, Tell
from workbench.live.prompts import Prompts
from workbench.live.spans import Spans
from workbench.live.ticket import Ticket, overdue, place_of
from workbench.live.warm_up import warm_build

LONG = 400_000  # events after which a run ends once the engine is idle
WAITING = 1024  # requests that may be open at once
HEADER = ("layers", "heads", "model", "device", "bytes_per_page")
IDLE = 0.02  # seconds between looks while there is nothing to do
TURN = 5e-4  # seconds after which a thread lets another have Python's lock; 5 ms of its own accord,
# which a step pays many times over while somebody's large request is read in another thread


class LiveEngine:
    """Runs an engine in a thread of its own, from `start` to `close`. `name`: the model's.
    `run` is the present run, read on timers of one's own; `failure` one line once the engine has
    broken. `at_once`: plain torch answers until kernels are compiled, then a fresh run begins.
    `queue`: requests open at once; `patience`: seconds in which one must have begun (0: any);
    `spans`: hear of every answer's end. `pace`: for a person to follow; 0: as fast as it goes.
    """

    def __init__(
        self, config: InferenceConfig, name: str = "", *, at_once: bool = False,
        queue: int = 0, patience: float = 0.0, spans: Spans | None = None,
    ) -> None:  # fmt: skip
        self.queue, self.patience, self.pace = queue, patience, 0.0  # pace: steps a second at most
        self.config, self.name = config, name or config.model.rstrip("/").rsplit("/", 1)[-1]
        self.created = int(time.time())
        self.run: Run | None = None
        self.failure, self.at_once = "", at_once
        self._compiling: subprocess.Popen[bytes] | None = None
        self.built: Built | None = None
        self.engine: Engine | None = None  # of the present run
        self.counts, self.embeddings = Counts(self.name, spans), Embeddings()
        self._ready, self._lock = threading.Event(), threading.Lock()
        self._waiting, self._aborts = Line(), Leaving()
        self._open: set[Ticket] = set()  # handed in, not over
        self._text = lru_cache(1 << 18)(self._decoded)  # of single tokens
        self._measured = False  # roofs: the next run's header carries them
        self._prompts: Prompts | None = None
        self.listeners: set[Any] = set()  # whoever is sending an answer on
        self.draining = False  # nothing more is taken in

    def start(self) -> "LiveEngine":
        """Begin; returns at once, the model is read in the engine's thread."""
        sys.setswitchinterval(TURN)
        seed = self.config.seed
        self.run = Run.start(self._drive, self.config, seed=seed, study="live", paused=True)
        self.run.resume()  # now that who hears an answer finds it here
        return self

    def wait(self, timeout: float | None = None) -> "LiveEngine":
        """Until the model is ready, or for `timeout` seconds. Raises BadInput where it is not."""
        self._ready.wait(timeout)
        if self.failure or self.built is None:
            raise BadInput(self.failure or f"model {self.name}: not ready after {timeout:g} s")
        return self

    @property
    def ready(self) -> bool:
        return self._ready.is_set() and not self.failure

    def close(self) -> None:
        """Stop the engine, end every answer."""
        if self._compiling is not None and self._compiling.poll() is None:
            self._compiling.terminate()
        self.drain()
        if self._prompts is not None:
            self._prompts.close()
        if self.run is not None:
            self.run.stop()
        self.counts.close()

    def ask(
        self, prompt: Sequence[int], sampling: Sampling, tell: Tell, *,
        user: str = "", base: int = 0, parent: str = "", **wishes: Any,
    ) -> Ticket:  # fmt: skip
        """Hand in one prompt; `tell` is called from the engine's thread.

        `parent`: the asker's span; `wishes`: further fields of the engine's Request (salt, …).
        Raises BadInput; Busy where too many are open, Away where none will be taken any more.
        """
        if self.failure or self.draining:
            raise Away(self.failure or AWAY)
        request = Request(np.asarray(prompt, np.int32), sampling, user=user, **wishes)
        ticket = Ticket(request, tell, base, parent)
        request.on_token, request.on_end = partial(self.token, ticket), partial(self.ended, ticket)
        if self.built is not None:  # so that the asker hears at once what it would say later
            validate(request, self.built.executor.facts, self.config.unmasking)
        with self._lock:
            most = self.queue or WAITING
            if len(self._open) + len(self._waiting) >= most:
                raise Busy(f"engine: {most} requests are open already; try again later")
            self._waiting.append(ticket)
        return ticket

    def abort(self, ticket: Ticket) -> None:
        """End a prompt's answers; one that is over already is left alone."""
        if ticket.left:
            self._aborts.append(ticket)

    @property
    def prompts(self) -> Prompts:
        """What encodes prompts, once the model is ready."""
        self.wait()
        assert self.built is not None
        tokenizer, facts = self.built.tokenizer, self.built.executor.facts
        with self._lock:
            if self._prompts is None or self._prompts.tokenizer is not tokenizer:
                self._prompts = Prompts(self.name, tokenizer, facts.context, facts.vocab, facts.eos)
            return self._prompts

    @property
    def busy(self) -> bool:
        """Whether an answer is not over, or not yet sent to who asked for it."""
        return bool(self._open or self._waiting or self.listeners)

    def drain(self) -> None:
        """Take nothing more in; what is open goes on."""
        self.draining = True

    def _drive(self, config: Any, live: Live) -> None:
        """The driver: build once, then step until stopped or until the run has grown long."""
        try:
            if self.built is None:
                self.built = self._build(config)
            self.engine = engine = self._begin(config, live)
            self._ready.set()
            while engine.busy or not self._must_begin_anew(live):
                self._obey(engine, live.poll(engine.clock.now()))
                self._take(engine, not self._must_begin_anew(live))
                begun = engine.clock.now()
                embedded = self.embeddings.step(self.built.executor, engine.busy)
                if engine.step():
                    self.counts.preempted(engine.scheduler.preempted)
                    if self.pace:
                        engine.clock.wait_until(begun + 1 / self.pace)
                elif not embedded:
                    time.sleep(IDLE)
        except BaseException as fault:
            if not self._ready.is_set() or not refused(fault):
                self._fail(fault)
                raise
            # What was under way may have left pages half written: the next run begins with none.
            self._end_all(SPENT)
        if self._compiled:
            self._compiling, self.built = None, warm_build(config)
        self._measured = False
        self.start()

    def _build(self, config: Any) -> Built:
        """The executor; a plain one where the kernels must be compiled first."""
        if self.at_once:
            from workbench.live.warm_start import compile_beside, must_compile, plain_build

            if must_compile(config):
                self._compiling = compile_beside()
                return plain_build(config)
        return warm_build(config)

    def _must_begin_anew(self, live: Live) -> bool:
        """Whether this run should end: it has grown long, or compiled kernels stand ready."""
        return self._compiled or self._measured or len(live.log) >= LONG

    @property
    def _compiled(self) -> bool:
        return self._compiling is not None and self._compiling.poll() == 0

    def _begin(self, config: Any, live: Live) -> Engine:
        built = self.built
        assert built is not None
        facts, blobs = built.executor.facts, live.log.blobs
        live.open(
            config,
            built.clock,
            **{name: getattr(config, name) for name in ("pages", "page_size", "host_pages")},
            **{name: getattr(facts, name) for name in HEADER},
            requests=0,
            roofs=list(facts.roofs),
            doubt=facts.doubt,
        )
        return Engine(config, built.executor, built.clock, live.emit, built.tokenizer, blobs)

    def _obey(self, engine: Engine, commands: list[dict[str, Any]]) -> None:
        for command in commands:
            if command.get("do") == "forget":
                engine.reset()
            elif (do := command.get("do")) in ("measure", "roofs") and self.built is not None:
                measure_roofs(self.built.executor, again=do == "measure")
                self._measured = True

    def _take(self, engine: Engine, more: bool) -> None:
        """Pass on what clients said since the last step."""
        if self.patience:
            with self._lock:
                self._aborts.extend(overdue([*self._open, *self._waiting], self.patience))
        for ticket in self._aborts.go():
            with self._lock:
                waiting = self._waiting.withdraw(ticket)
            if waiting:
                self._end(ticket, "abort", ticket.refused)
            for name in ticket.names:
                engine.abort(name, ticket.refused or "the client has gone")
        if more and self._waiting:
            with self._lock:
                come = self._waiting.come()
                self._open.update(come)
            for ticket in come:
                self._hand_in(engine, ticket)

    def _hand_in(self, engine: Engine, ticket: Ticket) -> None:
        request = ticket.request
        request.arrival = engine.clock.now()
        try:
            engine.add(request)
        except BadInput as fault:
            self._end(ticket, "error", str(fault))

    def token(self, ticket: Ticket, request: Request, token: int, text: str, value: float) -> None:
        """The engine's news of one token, passed on."""
        tops: tuple[tuple[Said, float], ...] = ()
        if request.sampling.logprobs and request.tops:
            tops = tuple([(self._text(top), logprob) for top, logprob in request.tops[-1]])
        named = self._text(token) if request.sampling.logprobs else text
        first = self.counts.token(ticket, request)
        scores = ticket.scores(self._text) if first else None
        self._tell(ticket, request, text=text, token=(named, value, tops), prompt=scores)

    def _decoded(self, token: int) -> Said:
        decoder = self.built and self.built.tokenizer
        return said(decoder, token) if decoder else ""

    def ended(self, ticket: Ticket, request: Request) -> None:
        """The engine's news of an end, passed on."""
        if request.state == "rejected" and not request.parent:  # its samples never began either
            return self._end(ticket, "error", request.reason)
        ticket.left -= 1
        if not ticket.left:
            self._open.discard(ticket)
        reason = request.reason if request.reason in ("stop", "length") else "abort"
        self.counts.ended(ticket, request, reason)
        return self._tell(ticket, request, reason=reason, refused=ticket.why(request))

    @staticmethod
    def _tell(ticket: Ticket, request: Request, **news: Any) -> None:
        facts = {"prompt_tokens": len(request.prompt), "cached": ticket.request.reused}
        ticket.tell(Piece(ticket.base + place_of(request), **facts, **news))

    def _end(self, ticket: Ticket, reason: str, refused: str = "") -> None:
        """End all answers of a ticket that is not in the engine."""
        self._open.discard(ticket)
        ticket.left = 0
        for place in range(ticket.request.sampling.n):
            ticket.tell(Piece(ticket.base + place, reason=reason, refused=refused))

    def _fail(self, fault: BaseException) -> None:
        """Nothing more will come: say so to whoever waits."""
        self.failure = AWAY if isinstance(fault, Stopped) else line(fault)
        self._ready.set()
        self._end_all(self.failure)

    def _end_all(self, why: str) -> None:
        self.embeddings.refuse(why)
        with self._lock:
            left = [*self._open, *self._waiting]
            self._waiting.clear()
        for ticket in left:
            self._end(ticket, "error", why)
