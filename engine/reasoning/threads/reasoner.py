"""Threads of thought step together: one forward pass over all of them gives each its next token.

New keys are appended to everybody's block before attention, so a thread sees the tokens that the
others write in the same step. A thread that finds no room ends; the others go on.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from engine.cache.layouts import Sight, placed
from engine.core.clock import Clock, StepClock
from engine.core.errors import BadInput
from engine.core.events import Blob, Span, Token
from engine.inference.detokenizer import Detokenizer
from engine.inference.engine import Engine
from engine.inference.executors.costs.forward_work import ForwardWork
from engine.inference.requests.rows import Rows
from engine.inference.requests.step import without_rows
from engine.inference.requests.view_sequences import ViewBatch, ViewResult
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.draw import draw
from engine.reasoning.threads.gather import gather
from engine.reasoning.threads.loaded_model import LoadedModel
from engine.reasoning.threads.step_events import Emit, StepEvents, tell_sights
from engine.reasoning.threads.thread import Thread
from engine.reasoning.threads.thread_table import MOST, ThreadTable

PROMPT = "prompt"
ENDED = "the model ended it"  # why a thread is over that has said so itself
ATTENTION = "attention_views"  # blobs: a row for each thread whose token is told next


class Reasoner:
    """A loaded model and its table of threads. Call `read`, `start` some, then `step` until False.

    With an `engine` its threads take pages of the engine's cache and step with its requests, one
    forward pass for all of them; without one they step alone.
    """

    def __init__(
        self, config: ReasoningConfig, loaded: LoadedModel, clock: Clock, emit: Emit,
        engine: Engine | None = None, blobs: dict[str, np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        """`blobs`: where sampled attention is put."""
        self.config, self.loaded, self.emit = config, loaded, emit
        self.blobs = blobs if blobs is not None else {}
        self.engine = engine
        self.clock = engine.clock if engine else StepClock(clock)
        shared = (engine.cache, engine.scheduler.make_room) if engine else (None, None)
        self.table = ThreadTable(config, self.clock, emit, *shared)
        work = ForwardWork(loaded.config, loaded.executor.facts.dtype)
        self.telling = StepEvents(emit, work, loaded.variant)
        self.pieces = Detokenizer(loaded.tokenizer)
        self.rows = Rows(1, config.page_size)  # none of a step alone
        self.planned: tuple[list[Thread], list[list[Sight]]] = [], []
        self.reader: Thread | None = None  # who holds the prompt
        self.prompt: list[int] = []
        self.number = 0  # steps done
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []  # (token numbers, logits) by step
        self.only = ""  # the thread that has this pass to itself, where each takes its own

    def read(self, prompt: Sequence[int]) -> None:
        """Compute the prompt, which every thread will see. Raises BadInput.

        Without a header the last token is left to each thread, whose first token it gives.
        """
        table, context = self.table, self.loaded.config.max_positions
        if not 2 <= len(prompt) < context:
            raise BadInput(f"prompt: {len(prompt)} tokens; the model takes 2 to {context - 1}")
        self.prompt = list(prompt)
        shared = self.prompt if self.header("worker", 1) else self.prompt[:-1]
        block = table.open(PROMPT, "")
        if not table.has_room(table.holdings.need(block, len(shared))):
            raise BadInput(
                f"prompt: {len(shared)} tokens do not fit {table.cache.available} pages of "
                f"{self.config.page_size}; give more pages"
            )
        reader = self.reader = Thread(PROMPT, "", -1, 0, block, shared)
        start = self.clock.now()
        table.holdings.append(reader, len(shared))
        view = placed([block])
        self._forward([reader], [view])
        self.telling.saved -= len(shared)  # nobody's own: the first thread that sees it saves none
        self.telling.forward(start, self.clock.now(), "prompt", [len(shared)], [view])
        block.open = False
        table.closed.append(block)

    def start(self, name: str, budget: int = MOST) -> Thread:
        """A thread that begins after the prompt. Raises BadInput."""
        return self.table.start(name, self.header(name, 1) or self.prompt[-1:], budget)

    def say(self, name: str, text: str) -> None:
        """Put words into a thread's mouth. Raises BadInput."""
        if self.loaded.tokenizer is None:
            raise BadInput(f"say to {name}: the model has no tokenizer")
        self.table.say(name, self.loaded.tokenizer.encode(text), text)

    def leave(self) -> None:
        """Give the prompt's pages back. Nobody may read it any more."""
        if self.reader is not None:
            self.table.holdings.release(self.reader)
            self.reader = None

    def step(self) -> bool:
        """One token for every running thread; False where nothing is left to do."""
        return self._apart() if self.config.fault == "apart" else self._step()

    def _apart(self) -> bool:
        """A mistake: each thread takes a forward pass of its own, requests share the first."""
        engine, done = self.engine, False
        for name in [thread.name for thread in self.table.running] or [""]:
            self.only = name
            done = self._step() or done
            self.engine = None
        self.engine, self.only = engine, ""
        return done

    def _step(self) -> bool:
        """One forward pass."""
        if self.engine is not None:
            return self.engine.step(self)
        start = self.clock.now()
        with self.clock.at(start):
            batch = self.plan(start)
        if batch is None:
            return False
        result = self._run(batch)
        now = self.clock.now()
        threads, views = self.planned
        self.telling.forward(start, now, "step", [len(t.feed) for t in threads], views)
        with self.clock.at(now):
            self.take(result, now)
        return True

    @property
    def busy(self) -> bool:
        """Whether a thread runs."""
        return bool(self.table.running)

    def plan(self, now: float) -> ViewBatch | None:
        """What the threads write in the step that begins now; None where none runs."""
        threads, views = self.planned = self._plan()
        if not threads:
            return None
        for thread, view in zip(threads, views, strict=True):
            tell_sights(self.emit, now, thread, view)
        return self._viewers(threads, views)

    def take(self, result: ViewResult, now: float) -> None:
        """Every thread that was planned for has its token now."""
        table, (threads, _) = self.table, self.planned
        tokens, names = result.tokens_B.tolist(), [thread.name for thread in threads]
        pieces = self.pieces.many(names, tokens)
        if result.mass_BN is not None:  # before any view changes
            ref = f"{ATTENTION}/{self.number}"
            self.blobs[ref] = result.mass_BN[[not thread.silent for thread in threads]]
            self.emit(Blob(now, ATTENTION, ref, list(self.blobs[ref].shape)))
        for thread, token, piece, logprob in zip(
            threads, tokens, pieces, result.logprobs_B.tolist(), strict=True
        ):
            if thread.silent:
                thread.feed = []
                continue
            self.emit(Token(now, thread.name, piece, logprob))
            self._take(thread, token, piece)
        said = [thread for thread in threads if not thread.silent]
        self.telling.levels(now, said, len(table.running), table.holdings)
        self.number += 1

    def header(self, name: str, step: int) -> list[int]:
        """The tokens that a step of a thread begins with."""
        text = self.config.header.replace("{worker}", name).replace("{step}", str(step))
        return self.loaded.tokenizer.encode(text) if self.loaded.tokenizer and text else []

    def _plan(self) -> tuple[list[Thread], list[list[Sight]]]:
        """Room for what everybody writes, and what everybody sees then."""
        table, context = self.table, self.loaded.config.max_positions
        for thread in self._stepping():
            self._make_room(thread)
        while True:
            threads = self._stepping()
            views = [table.view(thread) for thread in threads]
            over = [t for t, view in zip(threads, views, strict=True) if view[-1].end > context]
            if not over:
                break
            over[-1].block.length -= len(over[-1].feed)
            table.end(over[-1], "finished", f"the view is full: {context} positions")
        for thread, view in zip(threads, views, strict=True):
            table.holdings.see(thread, view)
        return threads, views

    def _stepping(self) -> list[Thread]:
        """Threads that write in this pass."""
        return [thread for thread in self.table.running if self.only in ("", thread.name)]

    def _make_room(self, thread: Thread) -> None:
        """Pages for what the thread is fed; where there are too few it ends."""
        table = self.table
        need = table.holdings.need(thread.block, len(thread.feed))
        if table.has_room(need):
            table.holdings.append(thread, len(thread.feed))
        else:
            short = need - table.cache.available
            table.prune(thread.name, f"the cache is full, {short} pages short", "aborted")

    def _forward(self, threads: list[Thread], views: list[list[Sight]]) -> ViewResult:
        """These threads write what they are fed, alone and whatever else there is to do."""
        return self._run(self._viewers(threads, views))

    def _run(self, batch: ViewBatch) -> ViewResult:
        """A step of nobody else; keys and values are stored, the clock moves."""
        start, every = self.clock.now(), self.config.attention_every
        asked = bool(every) and self.number % every == 0
        step = without_rows(self.number, self.rows, batch, sample_attention=asked)
        result = self.loaded.executor.execute(step)
        self.clock.wait_until(start + result.seconds)
        if result.attention_seconds:
            now = self.clock.now()
            self.emit(Span(now, "engine", "attention sample", now - result.attention_seconds))
        assert result.threads is not None
        return result.threads

    def _viewers(self, threads: list[Thread], views: list[list[Sight]]) -> ViewBatch:
        """What a step needs to know of these threads, who see these views."""
        holdings, record = self.table.holdings, self.table.record
        batch = gather(
            threads, views, holdings.tables, self.config.page_size, self.config.turn_queries
        )
        if record is not None:
            batch.logits_at_R = np.arange(len(batch.tokens_T), dtype=np.int32)
        self.telling.seen(threads, views)
        copies = np.array(holdings.copies, np.int32).reshape(-1, 2)
        holdings.copies.clear()
        return ViewBatch(
            batch,
            contexts_B=np.array([sum(s.seen for s in view) for view in views], np.int32),
            seed_B=np.array([thread.seed for thread in threads], np.uint64),
            known_B=np.array([len(thread.tokens) for thread in threads], np.uint64),
            answer=partial(self._answer, threads, views, batch.query_start_B1[1:] - 1),
            copies=copies,
        )

    def _answer(
        self, threads: list[Thread], views: list[list[Sight]], last_B: np.ndarray,
        logits_RV: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Each thread's token and its log-probability; all logits are kept where that is asked."""
        record = self.table.record
        if record is not None:
            first = len(record.tokens)
            for thread, view in zip(threads, views, strict=True):
                told = tuple((sight.block.name, sight.begin, sight.seen) for sight in view)
                record.add(thread.feed, thread.block.name, told)
            self.kept.append((np.arange(first, len(record.tokens)), logits_RV))
            logits_RV = logits_RV[last_B]
        return draw(logits_RV, threads, self.config.sampling, self.prompt, self.loaded.eos)

    def _take(self, thread: Thread, token: int, piece: str) -> None:
        """The thread has said `token`: it ends, ends a step, or goes on."""
        config, wish = self.config, self.config.sampling
        thread.tokens.append(token)
        thread.depth += 1
        spent = self.table.spent(thread)
        if token in self.loaded.eos and not wish.ignore_eos:
            self.table.end(thread, "finished", ENDED)
        elif spent:
            self.table.end(thread, "finished", spent)
        else:
            thread.feed = [token]
            ended = config.step_end in piece or thread.block.length >= config.step_tokens
            if config.layout.steps and ended:
                self.table.close(thread)
                thread.feed += self.header(thread.name, thread.step)
