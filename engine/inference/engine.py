"""The engine: requests in, steps through an executor, tokens and events out.

Any thread may add, abort and fork; what they say waits in an inbox until the next step. Nothing a
client does can stop the loop: an impossible request is rejected, an unknown one ignored.
"""

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from engine.cache.cache import Cache
from engine.core.clock import Clock, StepClock
from engine.core.events import AnyEvent, Blob, Level, Span
from engine.inference.config import InferenceConfig
from engine.inference.decode_run import DecodeRun, DecodeRuns
from engine.inference.detokenizer import Detokenizer
from engine.inference.executors.executor import Executor, Tokens
from engine.inference.executors.step_spans import part_spans
from engine.inference.intake import Intake, LiveRequests, validate
from engine.inference.kept_tokens import KeptTokens
from engine.inference.outputs import OutputProcessor
from engine.inference.requests.negative_prompt import check
from engine.inference.requests.request import Request
from engine.inference.requests.step import Result, Step
from engine.inference.requests.view_sequences import ThreadHost
from engine.inference.scheduler import Scheduler
from engine.inference.state_allocation import states_for
from engine.inference.told_chunks import told_chunks
from engine.inference.told_modules import told_modules

Emit = Callable[[AnyEvent], None]


class Begun(NamedTuple):
    """A step under way: what was decided, what it gives, and when it began (seconds)."""

    step: Step
    result: Result
    start: float
    lane: str = "engine"


class Engine:
    """One model's continuous batch. Call `step` until it returns False, then wait for requests."""

    def __init__(
        self,
        config: InferenceConfig,
        executor: Executor,
        clock: Clock,
        emit: Emit,
        tokenizer: Tokens | None = None,
        blobs: dict[str, np.ndarray] | None = None,
        quiet: bool = False,
    ) -> None:
        """`quiet`: of events it makes those of requests alone (`Branch`, `Mark`), no text."""
        self.config, self.executor, self.emit = config, executor, emit
        self.clock = StepClock(clock)
        self.blobs = blobs if blobs is not None else {}
        facts = executor.facts
        states = states_for(config, facts, self.clock, None if quiet else emit)
        self.cache = Cache(
            config.pages, config.page_size, config.eviction, self.clock, emit, config.host_pages,
            quiet, states,
        )  # fmt: skip
        self.quiet = quiet
        self.requests = LiveRequests()
        self.scheduler = Scheduler(config, self.cache, facts.context, self.requests.over)
        if self.scheduler.allocator.host.overlaps:
            self.scheduler.allocator.host.copy_seconds = executor.copy_seconds
        self.pieces = Detokenizer(tokenizer)
        self.encode = tokenizer.encode if tokenizer is not None else None
        self.intake = Intake(config, self.scheduler, self.requests)
        told = self.pieces, facts.vocab, facts.eos, quiet, self.blobs
        self.outputs = OutputProcessor(self.scheduler, *told)
        if clock.name == "wall":
            self.outputs.keep = KeptTokens(self.blobs).keep
        self.runs = DecodeRuns(config, executor, self.scheduler, self.outputs)
        self.number = 0  # steps done
        self._inbox: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._lock = threading.Lock()
        self._levels: dict[str, float] = {}

    def prepare(self, requests: list[Request]) -> None:
        """Show the ordering the whole job before any of it is added."""
        ranking = self.config.ordering.prepare(requests, self.config.page_size)
        if ranking is not None:
            ranks, groups, shared = (column.tolist() for column in ranking)
            for request, *place in zip(requests, ranks, groups, shared, strict=True):
                request.rank, request.group, request.shared = place

    def add(self, request: Request) -> str:
        """Take a request in; returns its id. Raises BadInput where it makes no sense at all."""
        validate(request, self.executor.facts, self.config.unmasking)
        if request.sampling.guidance != 1.0:
            check(request, self.encode, self.executor.facts)
        with self._lock:
            self.requests.name(request)
        self._inbox.append((self.intake.add, (request,)))
        return request.id

    def refuse(self, request: Request, why: str) -> None:
        """Take a request in only to say that it cannot run."""
        with self._lock:
            self.requests.name(request)
        self._inbox.append((self.intake.refuse, (request, why)))

    def abort(self, request_id: str, why: str = "") -> None:
        """End a request at the next step, whatever it is doing; unknown ids are ignored."""
        self._inbox.append((self.intake.abort, (request_id, why)))

    def fork(self, request_id: str) -> str:
        """Let a second thread go on from where a request is; returns the new thread's id."""
        with self._lock:
            child = self.requests.child_id(request_id)
        self._inbox.append((self.intake.fork, (request_id, child)))
        return child

    def reset(self) -> None:
        """Forget every cached page that nobody holds."""
        self._inbox.append((self.cache.reset, ()))
        self._inbox.append((self.scheduler.allocator.host.forget, ()))

    @property
    def busy(self) -> bool:
        """Whether a step would find something to do."""
        waiting = self.scheduler.rows.count or len(self.scheduler.queue)
        return bool(self._inbox) or bool(waiting)

    def step(self, host: ThreadHost | None = None) -> bool:
        """One step of the loop; False where there was nothing to do.

        Threads of `host` have a part in it.
        """
        begun = self.begin(host)
        if begun is None:
            return False
        self.clock.wait_until(begun.start + begun.result.seconds)
        self.end(begun, host)
        return True

    def begin(self, host: ThreadHost | None = None) -> Begun | None:
        """Decide the step that begins now and have its work done; None: there is nothing to do.

        Its tokens are nobody's until `end`, which is called once its seconds have passed.
        """
        start = self.clock.now()
        with self.clock.at(start):
            step = self.schedule(start, host)
        if step is None:
            self.tell_levels(start, 0)
            return None
        self.number += 1
        return Begun(step, self.executor.execute(step), start)

    def end(self, begun: Begun, host: ThreadHost | None = None) -> None:
        """The step that had begun is done now: its tokens arrive."""
        step, result = begun.step, begun.result
        now = self.clock.now()
        with self.clock.at(now):
            if not self.quiet:
                self.tell_step(step, result, begun.start, now, begun.lane)
            self.outputs.take(step, result, now)
            begin = begun.start + result.align_seconds + result.draft_seconds
            self.tell_drafts(step, result, begin, now)
            if host is not None and result.threads is not None:
                host.take(result.threads, now)
        self.tell_levels(now, step.tokens + self.scheduler.viewing)

    def begin_run(self, slower: float = 1.0) -> DecodeRun | None:
        """Decoding steps that begin now and come one after another, each `slower` times as long;
        None where `begin` is to be called. Only for an engine that is quiet."""
        self.hear()
        return self.runs.plan(self.number, self.clock.now(), slower)

    def take_run(self, run: DecodeRun, steps: int) -> None:
        """The first `steps` of a run have ended; not its last one, which `end_run` ends."""
        self.runs.take(run, steps)
        self.number = run.first + steps

    def end_run(self, run: DecodeRun) -> None:
        """The run is over now: requests that have all their tokens end."""
        self.take_run(run, len(run.ends))
        now = self.clock.now()
        with self.clock.at(now):
            self.runs.finish(now)

    def hear_in_run(self, run: DecodeRun, now: float) -> None:
        """What is asked during a run that nobody can join: it waits from the step after the one
        under way."""
        before, self.number = self.number, run.first + run.done(now) + 1
        self.hear()
        self.number = before

    def schedule(self, start: float, host: ThreadHost | None = None) -> Step | None:
        """What the step that begins now does."""
        self.hear()
        self.scheduler.begin(self.number)
        threads = host.plan(start) if host is not None else None
        return self.scheduler.schedule(self.number, start, threads)

    def hear(self) -> None:
        """Do what other threads asked for since the last step."""
        self.intake.step = self.number
        while self._inbox:
            do, arguments = self._inbox.popleft()
            do(*arguments)

    def run(self) -> None:
        """Step until nothing is left to do."""
        while self.busy and self.step():
            pass

    def tell_step(
        self, step: Step, result: Result, start: float, now: float, lane: str = "engine"
    ) -> None:
        emit = self.emit
        drafted = self._tell_drafting(step, result, start, now)
        if result.parts:
            self._tell_parts(step, result, drafted, now)
        if step.prefill_tokens:
            for span in told_chunks(step, self.scheduler.running.names, start, now):
                emit(span)
        for event in told_modules(step, result, self.scheduler.running.names, now, self.blobs):
            emit(event)
        if result.attention_P is not None:
            ref = f"attention_mass/{step.number}"
            self.blobs[ref] = result.attention_P
            emit(Span(now, "engine", "attention sample", now - result.attention_seconds))
            emit(Blob(now, "attention_mass", ref, list(result.attention_P.shape)))
        tag = f"decode={step.decodes} prefill={step.prefill_tokens}"
        if step.threads is not None:
            tag += f" threads={len(step.threads.contexts_B)}"
        if step.padding:
            tag += f" padding={step.padding}"
        emit(Span(now, lane, "step", start, result.flops, result.bytes, tag))

    def _tell_drafting(self, step: Step, result: Result, start: float, now: float) -> float:
        """What comes before a step's pass: a batch realigned, drafts made; when that is over."""
        aligned = start + result.align_seconds
        drafted = aligned + result.draft_seconds
        if result.align_seconds:
            self.emit(Span(aligned, "align", "align", start, tag=f"of={step.decodes}"))
        if result.draft_seconds and step.drafts_B is not None:
            tag = f"drafts={step.drafted} of={np.count_nonzero(step.drafts_B)}"
            self.emit(Span(drafted, "draft", "draft", aligned, tag=tag))
        begin, end = (drafted + after for after in result.beside)
        if end > begin and not result.parts:  # parts of the pass are told in its course
            self.emit(Span(min(end, now), "draft", "draft", begin, tag="beside=1"))
        return drafted

    def tell_drafts(self, step: Step, result: Result, start: float, now: float) -> None:
        """The verification of a step's drafts since `start`: how many each request kept, and
        where early exits were asked, of how many requests they foresaw the token after those."""
        kept = self.outputs.kept
        if kept is None or not step.drafted:
            return
        total, count = int(kept.kept_T.sum()), int(np.count_nonzero(kept.drafts_T))
        tag = f"drafts={step.drafted} kept={total} of={count}"
        self.emit(Span(now, "verify", "verify", start, tag=tag))
        self.emit(Level(now, "engine", "accepted_length", total / count + 1.0))
        if result.hits_S is not None:
            drafting = kept.drafts_T > 0
            last_T = (kept.first_T + kept.kept_T)[drafting]
            self.emit(Level(now, "engine", "foreseen", float(result.hits_S[last_T].mean())))

    def _tell_parts(self, step: Step, result: Result, start: float, now: float) -> None:
        """The step's operations, each with its work, and what timing them apart cost."""
        facts = self.executor.facts
        for span in part_spans(step, result.parts, start, now, facts.dtype, facts.cache):
            self.emit(span)
        if result.profile_seconds:
            self.emit(Span(now, "engine", "profile sample", now - result.profile_seconds))

    def tell_levels(self, now: float, tokens: int) -> None:
        if self.quiet:
            return
        cache, scheduler, last = self.cache, self.scheduler, self._levels
        values = (
            ("running", scheduler.rows.count - scheduler.padded),
            ("waiting", len(scheduler.queue)),
            ("pages_used", cache.held),
            ("pages_cached", cache.cached),
            ("pages_free", cache.pool.free),
            ("pages_host", cache.host.total - cache.host.free),
            *(cache.states.levels() if cache.states is not None else ()),
            ("tokens_step", tokens),
        )
        for name, value in values:
            if last.get(name) != value:
                last[name] = value
                self.emit(Level(now, "engine", name, float(value)))
