"""Counts of a live server for Prometheus, under vLLM's names where they mean the same.

Buckets are vLLM's too, so that one dashboard shows both.
"""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from engine.inference.engine import Engine
from engine.inference.requests.request import Request
from workbench.live.spans import Spans
from workbench.live.ticket import Ticket, place_of

FIRST = (.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
         160, 640, 2560)  # fmt: skip
BETWEEN = (.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40,
           80)  # fmt: skip
WHOLE = (.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
         7680)  # fmt: skip
TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
LABELS = ("model_name", "engine")
REASONS = ("stop", "length", "abort")


class Counts:
    """What has been served since the server's start. Written by the engine's thread alone.

    `spans` hear of every answer's end, too.
    """

    def __init__(self, model: str, spans: Spans | None = None) -> None:
        self.spans = spans
        self.registry = CollectorRegistry()
        self.labels = {"model_name": model, "engine": "0"}
        self.running = self._made(Gauge, "num_requests_running", "Requests in the batch")
        self.waiting = self._made(Gauge, "num_requests_waiting", "Requests that wait for it")
        self.usage = self._made(Gauge, "kv_cache_usage_perc", "Pages held of all, from 0 to 1")
        self.asked = self._made(Counter, "prompt_tokens", "Tokens of prompts")
        self.made = self._made(Counter, "generation_tokens", "Tokens generated")
        self.looked = self._made(Counter, "prefix_cache_queries", "Prompt tokens looked up")
        self.hits = self._made(Counter, "prefix_cache_hits", "Prompt tokens that were cached")
        self.preemptions = self._made(Counter, "num_preemptions", "Requests that yielded")
        ends = Counter(
            "vllm:request_success", "Answers that ended", (*LABELS, "finished_reason"),
            registry=self.registry,
        )  # fmt: skip
        self.ends = {why: ends.labels(**self.labels, finished_reason=why) for why in REASONS}
        timed = {"first": ("time_to_first_token_seconds", FIRST, "Until the first token")}
        timed["between"] = ("inter_token_latency_seconds", BETWEEN, "Between tokens of an answer")
        timed["whole"] = ("e2e_request_latency_seconds", WHOLE, "Until an answer ended")
        timed["prompt"] = ("request_prompt_tokens", TOKENS, "Tokens of a prompt")
        timed["answer"] = ("request_generation_tokens", TOKENS, "Tokens of an answer")
        self.of = {
            key: self._made(Histogram, name, about, buckets=buckets)
            for key, (name, buckets, about) in timed.items()
        }

    def _made(self, kind: Any, name: str, about: str, **more: Any) -> Any:
        made = kind(f"vllm:{name}", about, LABELS, registry=self.registry, **more)
        return made.labels(**self.labels)

    def token(self, ticket: Ticket, request: Request) -> bool:
        """A token has come; whether it is its answer's first."""
        now, place = time.monotonic(), place_of(request)
        before = ticket.last.get(place)
        if not ticket.last:
            prompt = len(request.prompt)
            self.asked.inc(prompt)
            self.looked.inc(prompt)
            self.hits.inc(min(ticket.request.reused, prompt))
            self.of["prompt"].observe(prompt)
            self.of["first"].observe(now - ticket.asked)
        elif before is not None:
            self.of["between"].observe(now - before)
        self.made.inc()
        ticket.first.setdefault(place, now)
        ticket.last[place] = now
        return before is None

    def ended(self, ticket: Ticket, request: Request, reason: str) -> None:
        """An answer has ended."""
        self.ends[reason].inc()
        self.of["answer"].observe(len(request.generated))
        self.of["whole"].observe(time.monotonic() - ticket.asked)
        if self.spans is not None:
            self.spans.ended(ticket, request, reason)

    def close(self) -> None:
        """Nothing more will be served."""
        if self.spans is not None:
            self.spans.close()

    def preempted(self, count: int) -> None:
        """`count` requests yielded in a step."""
        if count:
            self.preemptions.inc(count)

    def text(self, engine: Engine | None) -> bytes:
        """All of it in Prometheus' text format, with the moment's gauges."""
        if engine is not None:
            self.running.set(engine.scheduler.rows.count)
            self.waiting.set(len(engine.scheduler.queue))
            self.usage.set(engine.cache.held / engine.config.pages)
        return generate_latest(self.registry)
