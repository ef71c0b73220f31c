"""Random lives of an engine: every operation a client or the scheduler can cause, in any order."""

import numpy as np

from engine.core.clock import VirtualClock
from engine.inference.config import InferenceConfig
from engine.inference.engine import Engine
from engine.inference.policies.unmasking import Confidence
from engine.inference.requests.canvas import Canvas
from engine.inference.requests.request import Request, Source, sampling
from tests.engine.inference.audit import Reader, audit
from tests.engine.inference.memory import VOCAB, PageMemory

CHOICES = {
    "batching": ["decode_first", "decode_first", "prefill_first", "static_batch", "one_instance"],
    "ordering": ["fcfs", "shortest_first", "priority", "fair_share", "by_turns"],
    "admission": ["greedy", "reserve"],
    "preemption": ["recompute", "swap"],
    "eviction": ["lru", "fifo", "least_frequent", "next_use"],
    "speculation": ["none", "none", "ngram", "draft_model"],
}


class Life:
    """One engine under random operations; `play` does one and checks everything after it."""

    def __init__(self, seed: int, states: bool = False) -> None:
        """`states`: of a model that keeps recurrent ones."""
        self.draw = np.random.default_rng(seed)
        draw = self.draw
        self.size = int(draw.choice([1, 2, 4, 8]))
        pages = int(draw.integers(6, 60))
        host = int(draw.choice([0, 5, 100]))
        picked = {name: str(draw.choice(options)) for name, options in CHOICES.items()}
        drafts = picked["speculation"] == "draft_model"
        if picked["speculation"] != "none":
            branches = 1 if states else int(draw.choice([1, 1, 2, 4]))
            picked["speculation"] = {"kind": picked["speculation"], "branches": branches}
        config = InferenceConfig(
            pages=pages,
            host_pages=host,
            page_size=self.size,
            max_running=int(draw.integers(1, 8)),
            step_tokens=int(draw.integers(1, 40)),
            prefix_sharing=bool(draw.random() < 0.85),
            patience=int(draw.choice([3, 50, 10_000])),
            **picked,
        )
        self.events: list = []
        self.read = 0
        self.reader = Reader(pages)
        running = config.max_running if states else 0
        memory = PageMemory(pages, host, self.size, (3,), drafts, running)
        self.engine = Engine(config, memory, VirtualClock(), self.events.append)
        self.masks = memory.facts.both_ways and picked["speculation"] == "none"
        self.prefix = draw.integers(0, VOCAB, 40)
        self.requests: list[Request] = []
        self.sources = Source(), Source()

    def play(self) -> None:
        operations = [self.admit, self.append, self.append, self.append, self.fork, self.abort]
        operations += [self.preempt, self.reset, self.finish, self.admit]
        operation = operations[int(self.draw.integers(len(operations)))]
        operation()
        self.check()

    def check(self) -> None:
        audit(self.engine)
        self.reader.read(self.events[self.read :])
        self.read = len(self.events)
        self.reader.agrees(self.engine)

    def admit(self) -> None:
        draw = self.draw
        own = draw.integers(0, VOCAB, int(draw.integers(1, 12)))
        prompt = np.concatenate([self.prefix[: int(draw.integers(0, 40))], own])
        wish = sampling(
            max_tokens=int(draw.integers(1, 20)),
            n=int(draw.choice([1, 1, 1, 3])),
            temperature=float(draw.choice([0.0, 1.0])),
        )
        request = Request(prompt, wish, user=str(draw.integers(3)), priority=int(draw.integers(3)))
        request.salt = str(draw.choice(["", "", "other"]))
        request.source = (None, *self.sources)[len(self.requests) % 3]
        if self.masks and draw.random() < 0.3:
            wish = sampling(max_tokens=wish.max_tokens, temperature=1.0)
            request.sampling, request.canvas = wish, Canvas(VOCAB - 1, Confidence(tokens=2))
        self.engine.add(request)
        self.engine.hear()
        self.requests.append(request)

    def append(self) -> None:
        self.engine.step()

    def finish(self) -> None:
        for _ in range(5):
            self.engine.step()

    def fork(self) -> None:
        if self.engine.requests:
            self.engine.fork(self.draw.choice(sorted(self.engine.requests)))
            self.engine.hear()

    def abort(self) -> None:
        ids = [*sorted(self.engine.requests), "nobody"]
        self.engine.abort(str(self.draw.choice(ids)))
        self.engine.hear()

    def preempt(self) -> None:
        scheduler = self.engine.scheduler
        able = [r for r in scheduler.running.requests if not r.over]
        if able:
            view = scheduler.view(self.engine.number, self.engine.clock.now())
            scheduler.preempt(able[int(self.draw.integers(len(able)))], view, "a test says so")

    def reset(self) -> None:
        self.engine.reset()
        self.engine.hear()

    def end(self) -> None:
        """Everything that was asked for comes to an end, and every page is free or cached."""
        left = 20_000
        while self.engine.busy and left:
            self.engine.step()
            left -= 1
        assert left, "requests wait for ever"
        self.check()
        assert all(r.over for r in self.requests)
        assert not self.engine.requests
        assert self.engine.cache.held == 0
        assert not any(source.running for source in self.sources)
        assert self.engine.cache.host.free == self.engine.cache.host.total
