"""Speculator: adds drafts to a step's decodes, and says which of them verification kept.

The page table is the alignment: each request of a batch keeps as many drafts as hold for it, gives
the pages of the others back and goes on from there; nothing is padded or moved.

Shape letters: D sequences that decode, S samples, K drafts of one request.
"""

import numpy as np

from engine.core.errors import BadInput
from engine.inference.config import InferenceConfig
from engine.inference.page_allocation import PageAllocator
from engine.inference.requests.step import Step
from engine.inference.running import Running
from engine.kernels import drafts


class Speculator:
    """What a speculation policy does to steps. Drafts take what a step has left: tokens, pages."""

    def __init__(self, config: InferenceConfig, running: Running, allocator: PageAllocator) -> None:
        """Raises BadInput for drafts longer than the cache."""
        policy, tokens = config.speculation, config.pages * config.page_size
        if policy.drafts >= tokens:
            raise BadInput(
                f"knob 'speculation.tokens': a draft of {policy.drafts} tokens is longer than the "
                f"cache, which holds {tokens}; draft fewer, or give it more pages"
            )
        self.policy, self.rows, self.allocator = policy, running.rows, allocator
        # A model drafts its last token without computing that token's own keys and values. Where
        # all is kept the target forgets its own too, so that both caches hold the same tokens.
        self.lag = 1 if policy.draft_model else 0
        # A modelled run's tokens mean nothing: as many are found as may be.
        self.looks_up = config.executor.real and not policy.draft_model

    def extend(self, step: Step, budget: int) -> Step:
        """Let the decodes of `step` verify drafts, within `budget` tokens and the pages free."""
        if not self.policy.drafts:
            return step
        rows, count = self.rows, step.decodes
        decode, from_S = step.rows_B[:count], step.sample_from_S
        queries_B = step.queries_B.copy()
        queries_B[:count] = rows.known[decode] - step.starts_B[:count]
        drafts_B = np.zeros(len(queries_B), np.int32)
        left, total = budget - int(queries_B.sum()), 0
        if count and left > 0 and self.policy.proposes(count):
            total = self._plan(decode, left, drafts_B)
            queries_B += drafts_B
        own, done = count + total, step.sample_rows_S[count:]  # those whose prompts are done
        rows_S = np.empty(own + len(done), np.int64)
        sample_from_S, ahead_S = np.empty_like(rows_S), np.zeros(len(rows_S), np.int32)
        drafts.samples(decode, from_S, drafts_B[:count], rows_S, sample_from_S, ahead_S)
        rows_S[own:], sample_from_S[own:] = done, from_S[count:]
        step.queries_B, step.drafts_B, step.ahead_S = queries_B, drafts_B, ahead_S
        step.sample_rows_S, step.sample_from_S, step.whole = rows_S, sample_from_S, False
        starts_D = step.starts_B[:count]
        step.realigned = self.policy.pads and count > 1 and bool((starts_D != starts_D[0]).any())
        return step

    def _plan(self, decode: np.ndarray, left: int, drafts_B: np.ndarray) -> int:
        """Fill the drafts of each row, `left` at most in all, and give them pages; their number."""
        rows, found_DK = self.rows, np.empty((len(decode), self.policy.drafts), np.int32)
        if self.looks_up:
            self.policy.propose(rows.tokens, decode, rows.known, found_DK)
        short_D, free = np.empty(len(decode), np.int32), self.allocator.cache.available
        total = drafts.plan(
            rows.tokens, decode, rows.known, rows.limit, rows.guided, rows.pages, found_DK,
            self.looks_up, left, free, rows.page_size, drafts_B, short_D,
        )  # fmt: skip
        self.allocator.take_ahead(decode, short_D)
        return int(total)

    def accept(self, step: Step, tokens_S: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Decodes go on from where the target's tokens_S repeat their drafts.

        kept_D, how many of its drafts each keeps, and the draft after each of their samples; pages
        beyond are given back.
        """
        assert step.drafts_B is not None
        rows, count = self.rows, step.decodes
        decode, drafts_D = step.rows_B[:count], step.drafts_B[:count]
        kept_D, over_D = np.empty(count, np.int32), np.empty(count, np.int32)
        drafts_S = np.zeros(len(tokens_S), np.int32)
        over = drafts.accept(
            rows.tokens, decode, rows.known, rows.cached, rows.pages, drafts_D, tokens_S,
            self.lag, self.policy.broken == "one_length", rows.page_size, kept_D, over_D, drafts_S,
        )  # fmt: skip
        if over:
            self.allocator.give_back_ahead(decode, over_D, int(over))
        return kept_D, drafts_S
