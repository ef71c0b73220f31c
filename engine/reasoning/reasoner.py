"""Threads of thought step together: one forward pass over all of them gives each its next token.

New keys are appended to everybody's block before attention, so a thread sees the tokens that the
others write in the same step. A thread that finds no room ends; the others go on.
"""

from collections.abc import Sequence

import numpy as np

from engine.cache.layouts import Sight, placed
from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.core.events import Token
from engine.inference.forward_work import ForwardWork
from engine.inference.text import Pieces
from engine.reasoning.board import MOST, Board
from engine.reasoning.config import ReasoningConfig
from engine.reasoning.draw import draw
from engine.reasoning.gather import gather
from engine.reasoning.mind import Mind
from engine.reasoning.telling import Emit, Telling, tell_sights
from engine.reasoning.thread import Thread

PROMPT = "prompt"


class Reasoner:
    """One mind and its board of threads. Call `read`, `start` some, then `step` until False."""

    def __init__(self, config: ReasoningConfig, mind: Mind, clock: Clock, emit: Emit) -> None:
        self.config, self.mind, self.clock, self.emit = config, mind, clock, emit
        self.board = Board(config, emit)
        dtype = str(mind.model.dtype).removeprefix("torch.")
        variant = "fused" if mind.model.fused else "kernels" if mind.model.compiled else "torch"
        self.telling = Telling(emit, ForwardWork(mind.model.config, dtype), variant)
        self.pieces = Pieces(mind.tokenizer)
        self.prompt: list[int] = []
        self.number = 0  # steps done
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []  # (token numbers, logits) by step

    def read(self, prompt: Sequence[int]) -> None:
        """Compute the prompt, which every thread will see. Raises BadInput.

        Without a header the last token is left to each thread, whose first token it gives.
        """
        board, context = self.board, self.mind.model.config.max_positions
        if not 2 <= len(prompt) < context:
            raise BadInput(f"prompt: {len(prompt)} tokens; the model takes 2 to {context - 1}")
        self.prompt = list(prompt)
        shared = self.prompt if self.header("", 1) else self.prompt[:-1]
        block = board.open(PROMPT, "")
        if board.holdings.need(block, len(shared)) > board.cache.available:
            raise BadInput(
                f"prompt: {len(shared)} tokens do not fit {self.config.pages} pages of "
                f"{self.config.page_size}; give more pages"
            )
        reader = Thread(PROMPT, "", -1, 0, block, shared)
        start = board.cache.now = self.clock.now()
        board.holdings.append(reader, len(shared))
        view = placed([block])
        self._forward([reader], [view])
        board.cache.now = self.clock.now()
        self.telling.forward(start, board.cache.now, "prompt", [len(shared)], [view])
        block.open = False
        board.closed.append(block)

    def start(self, name: str, budget: int = MOST) -> Thread:
        """A thread that begins after the prompt. Raises BadInput."""
        return self.board.start(name, self.header(name, 1) or self.prompt[-1:], budget)

    def say(self, name: str, text: str) -> None:
        """Put words into a thread's mouth. Raises BadInput."""
        if self.mind.tokenizer is None:
            raise BadInput(f"say to {name}: the model has no tokenizer")
        self.board.say(name, self.mind.tokenizer.encode(text), text)

    def step(self) -> bool:
        """One token for every running thread; False where none runs."""
        board = self.board
        start = board.cache.now = self.clock.now()
        threads, views = self._plan()
        if not threads:
            return False
        for thread, view in zip(threads, views, strict=True):
            tell_sights(self.emit, start, thread, view)
        fed = [len(thread.feed) for thread in threads]
        logits_RV = self._forward(threads, views)
        wish, eos = self.config.sampling, self.mind.eos
        tokens_R, logprobs_R = draw(logits_RV, threads, wish, self.prompt, eos)
        tokens, names = tokens_R.tolist(), [thread.name for thread in threads]
        pieces = self.pieces.many(names, tokens)
        now = board.cache.now = self.clock.now()
        self.telling.forward(start, now, "step", fed, views)
        for thread, token, piece, logprob in zip(
            threads, tokens, pieces, logprobs_R.tolist(), strict=True
        ):
            self.emit(Token(now, thread.name, piece, logprob))
            self._take(thread, token, piece)
        self.telling.levels(now, board.threads.values(), views, board.holdings)
        self.number += 1
        return True

    def header(self, name: str, step: int) -> list[int]:
        """The tokens that a step of a thread begins with."""
        text = self.config.header.replace("{worker}", name).replace("{step}", str(step))
        return self.mind.tokenizer.encode(text) if self.mind.tokenizer and text else []

    def _plan(self) -> tuple[list[Thread], list[list[Sight]]]:
        """Room for what everybody writes, and what everybody sees then."""
        board, context = self.board, self.mind.model.config.max_positions
        for thread in board.running:
            short = board.holdings.need(thread.block, len(thread.feed)) - board.cache.available
            if short > 0:
                board.prune(thread.name, f"the cache is full, {short} pages short", "aborted")
            else:
                board.holdings.append(thread, len(thread.feed))
        while True:
            threads = board.running
            views = [board.view(thread) for thread in threads]
            over = [t for t, view in zip(threads, views, strict=True) if view[-1].end > context]
            if not over:
                break
            over[-1].block.length -= len(over[-1].feed)
            board.end(over[-1], "finished", f"the view is full: {context} positions")
        for thread, view in zip(threads, views, strict=True):
            board.holdings.see(thread, view)
        return threads, views

    def _forward(self, threads: list[Thread], views: list[list[Sight]]) -> np.ndarray:
        """logits_RV after each thread's last new token; its keys and values are stored."""
        holdings, storage = self.board.holdings, self.mind.storage
        if holdings.copies:
            storage.copy(np.array(holdings.copies, np.int32))
            holdings.copies.clear()
        size, turn = self.config.page_size, self.config.turn_queries
        batch = gather(threads, views, holdings.tables, size, turn)
        record = self.board.record
        if record is not None:
            batch.logits_at_R = np.arange(len(batch.tokens_T), dtype=np.int32)
        logits_RV: np.ndarray = self.mind.model.forward(batch, storage.kv).cpu().numpy()
        if record is None:
            return logits_RV
        first = len(record.tokens)
        for thread, view in zip(threads, views, strict=True):
            told = tuple((sight.block.name, sight.begin, sight.seen) for sight in view)
            record.add(thread.feed, thread.block.name, told)
        self.kept.append((np.arange(first, len(record.tokens)), logits_RV))
        return logits_RV[batch.query_start_B1[1:] - 1]

    def _take(self, thread: Thread, token: int, piece: str) -> None:
        """The thread has said `token`: it ends, ends a step, or goes on."""
        config, wish = self.config, self.config.sampling
        thread.tokens.append(token)
        thread.depth += 1
        if token in self.mind.eos and not wish.ignore_eos:
            self.board.end(thread, "finished", "the model ended it")
        elif len(thread.tokens) >= thread.budget:
            self.board.end(thread, "finished", f"its budget of {thread.budget} tokens is spent")
        elif config.critical and thread.depth >= config.critical:
            why = f"the critical path has its {config.critical} tokens"
            self.board.end(thread, "finished", why)
        else:
            thread.feed = [token]
            ended = config.step_end in piece or thread.block.length >= config.step_tokens
            if config.layout.steps and ended:
                self.board.close(thread)
                thread.feed += self.header(thread.name, thread.step)
