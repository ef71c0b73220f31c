"""Quiet step: decides the next step of an engine that tells nothing of pages, with fewer questions.

The policies are asked as by the scheduler; who decodes, and the pages that rows are short of, are
found by one call. A step that needs more (pages that are short, rows that take turns, forks) is
left to the scheduler before anything has changed.
"""

import numpy as np

from engine.inference.admission import AdmissionControl
from engine.inference.config import InferenceConfig
from engine.inference.policies.batching.decode_first import DecodeFirst
from engine.inference.policies.policy import View
from engine.inference.prefill import Prefill
from engine.inference.requests.step import Step
from engine.kernels import paged_rows
from engine.kernels.compiled import settled


class QuietSteps:
    """Steps in which all that can decode, beside chunks of prompts."""

    def __init__(
        self, config: InferenceConfig, prefill: Prefill, admission: AdmissionControl
    ) -> None:
        self.config, self.prefill, self.admission = config, prefill, admission
        self.running, self.allocator = admission.running, admission.allocator
        self.rows, cache = self.running.rows, self.running.cache
        self.cache, self.queue = cache, admission.queue
        self._ready, self._compose = settled(paged_rows.ready), settled(paged_rows.compose)
        self._decode_R = np.zeros(config.max_running, np.int64)
        self.allowed = (
            cache.quiet
            and cache.pool.plain
            and cache.states is None
            and type(config.batching) is DecodeFirst
            and not (config.ordering.displaces or config.speculation.drafts)
            and not (config.attention_every or config.profile_every)
        )

    def schedule(self, view: View) -> Step | None:
        """The step that begins; None where the scheduler is to decide it."""
        rows, cache, prefill = self.rows, self.cache, self.prefill
        if self.running.forked or self.admission.waiting_forks or not rows.count:
            return None
        if self.running.masked:
            return None
        waits = np.array([request.row for request in prefill.pending], np.int64)
        pool, before = cache.pool, cache.pool.free
        count, pool.free, gone = self._ready(
            cache.idle.table, rows.columns, waits, rows.count, view.budget, before,
            before + cache.cached, self._decode_R,
        )  # fmt: skip
        if count < 0:
            return None
        cache.cached -= gone
        decode = view.found = self._decode_R[:count]
        (mix,) = self.config.batching.mixes(view)
        chunks = prefill.begin(mix)
        self.admission.fill(mix, chunks, view, prefill)
        return self._step(decode, view) if count or chunks.rows else None

    def _step(self, decode: np.ndarray, view: View) -> Step:
        rows, requests, chunks = self.rows, self.running.requests, self.prefill.chunks
        count, many = len(decode), len(decode) + len(chunks.rows)
        rows_XB, counts_YB = np.empty((3, many), np.int64), np.empty((2, many), np.int32)
        rows_XB[0, :count], rows_XB[0, count:] = decode, chunks.rows
        counts_YB[0, count:] = chunks.queries
        samples, seen = self._compose(rows.columns, count, rows_XB, counts_YB)
        rows_B, rows_S, from_S = rows_XB
        queries_B, starts_B = counts_YB
        rows_S, from_S = rows_S[:samples], from_S[:samples]
        for row in rows_S[count:].tolist():
            self.prefill.done(requests[row])
        return Step(
            number=view.step, rows=rows, requests=requests, rows_B=rows_B,
            starts_B=starts_B, queries_B=queries_B, sample_rows_S=rows_S,
            sample_from_S=from_S, decodes=count, prefill_tokens=sum(chunks.queries), seen=seen,
            moves=self.allocator.movements(), whole=many == count == rows.count,
        )  # fmt: skip
