"""Watching another server: what it publishes, once in a while, as events of a run.

Gauges are levels as they are; of counters the rate since the look before; of latencies' histograms
what came since the watch began, kept as `latency/<kind>` [2, K]: bounds in seconds, how many
requests were at most so slow. A server that began anew counts from nought, as Prometheus has it.
"""

from contextlib import closing, nullcontext
from typing import Any

import numpy as np

from engine.core.clock import WallClock
from engine.core.config import Config, knob
from engine.core.errors import BadInput
from engine.core.events import Level, Mark
from engine.core.measure import BUCKETS
from engine.core.run import Live
from workbench.attach.cache_events import CacheEvents
from workbench.attach.metrics import Metrics, read
from workbench.attach.scrape import Address, address, scrape

NAP = 0.05  # seconds between looks at what a person says


class Attached(Config):
    """Which server is watched."""

    url: str = knob("", "Address of a vLLM or SGLang server, http://host:port")
    every: float = knob(1.0, "Between two looks at its metrics", low=0.1, high=60.0, unit="s")
    cache_events: str = knob(
        "", "Where it publishes events of its KV cache, tcp://host:port; empty: not watched"
    )
    seconds: float = knob(0.0, "Watch so long; 0: until stopped", low=0.0, high=1e6, unit="s")


class Watch:
    """One server under watch."""

    def __init__(self, config: Attached, live: Live, server: Address) -> None:
        self.config, self.live, self.server, self.clock = config, live, server, WallClock()
        self.before: tuple[float, Metrics] | None = None
        self.since: dict[str, np.ndarray] = {}  # counts of histograms when the watch began
        self.silent = False

    def open(self, first: Metrics) -> None:
        pages = {"pages": first.pages} if first.pages else {}
        self.live.open(
            self.config, self.clock, model=first.model, server=first.server,
            page_size=first.page_size or 1, **pages,
        )  # fmt: skip
        self.since = {kind: counts.copy() for kind, (_, counts) in first.latencies.items()}
        self.tell(first)

    def look(self) -> None:
        """One look; a server that does not answer is told once, and looked at again."""
        try:
            found = read(scrape(self.server))
        except BadInput as fault:
            if not self.silent:
                self.live.emit(Mark(self.clock.now(), "server", "silent", str(fault)))
            self.silent = True
            return
        if self.silent:
            self.live.emit(Mark(self.clock.now(), "server", "back", "it answers again"))
        self.silent = False
        self.tell(found)

    def tell(self, found: Metrics) -> None:
        """Emit one look's levels and latencies."""
        now = self.clock.now()
        for name, engines in found.gauges.items():
            for engine, value in engines.items():
                lane = f"engine {engine}"
                if name == "cache_use" and found.pages:
                    self._level(now, lane, "pages_used", value * found.pages / len(engines))
                else:
                    self._level(now, lane, name, value)
        if self.before is not None:
            self._rates(now, found, *self.before)
        self._latencies(now, found)
        self.before = now, found

    def _level(self, now: float, lane: str, name: str, value: float) -> None:
        if np.isfinite(value):
            self.live.emit(Level(now, lane, name, value))

    def _rates(self, now: float, found: Metrics, then: float, before: Metrics) -> None:
        """What came since the look before: tokens a second, and the share that the cache had."""
        for name in ("prompt_tokens", "answer_tokens"):
            for engine, value in found.counters.get(name, {}).items():
                more = _more(value, before.counters.get(name, {}).get(engine, 0.0))
                self._level(now, f"engine {engine}", f"{name}_per_second", more / (now - then))
        for engine, value in found.counters.get("looked_up", {}).items():
            asked = _more(value, before.counters.get("looked_up", {}).get(engine, 0.0))
            hits = found.counters.get("hits", {}).get(engine, 0.0)
            if asked > 0:
                more = _more(hits, before.counters.get("hits", {}).get(engine, 0.0))
                self._level(now, f"engine {engine}", "prefix_hit_rate", more / asked)
        for engine, value in found.counters.get("preemptions", {}).items():
            more = _more(value, before.counters.get("preemptions", {}).get(engine, 0.0))
            if more > 0:
                text = f"engine {engine}: {more:,.0f} requests gave way"
                self.live.emit(Mark(now, "server", "preempted", text))

    def _latencies(self, now: float, found: Metrics) -> None:
        for kind, (bounds, counts) in found.latencies.items():
            since = self.since.get(kind)
            if since is None or len(since) != len(counts) or counts[-1] < since[-1]:
                since = self.since[kind] = np.zeros(len(counts))  # begun anew
            self.live.keep(now, BUCKETS + kind, np.stack([bounds, counts - since]))


def _more(value: float, before: float) -> float:
    return value - before if value >= before else value


def watch(config: Any, live: Live) -> None:
    """The driver: watch until stopped or the time is over. Raises BadInput where nobody answers at
    the first look."""
    server = address(config.url)
    seen = Watch(config, live, server)
    seen.open(read(scrape(server)))
    clock, then = seen.clock, seen.clock.now()
    line = CacheEvents(config.cache_events, live.emit) if config.cache_events else None
    with closing(line) if line is not None else nullcontext():
        while not config.seconds or clock.now() < config.seconds:
            live.poll(clock.now())
            if clock.now() >= then + config.every:
                then = clock.now()
                seen.look()
            elif line is not None:
                line.take(clock.now(), NAP)
            else:
                clock.wait_until(min(clock.now() + NAP, then + config.every))
