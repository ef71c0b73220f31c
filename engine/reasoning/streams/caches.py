"""Parallel caches: every stream writes a cache of its own and reads parts of others', in one batch.

A stream is a block of pages; what it sees of another is that block's first so many tokens, at a
fixed distance. One forward pass writes to any number of streams, so reading goes on while others
think. Shape letters: R feeds, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numba
import numpy as np

from engine.cache.cache import Cache
from engine.cache.eviction import LeastRecentlyUsed
from engine.cache.layouts import Block, Sight
from engine.core.clock import Clock, VirtualClock
from engine.core.errors import BadInput
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.reasoning.threads.gather import gather
from engine.reasoning.threads.loaded_model import LoadedModel
from engine.reasoning.threads.step_events import Emit, StepEvents, tell_sights
from engine.reasoning.threads.thread import Thread
from engine.reasoning.threads.thread_pages import ThreadPages

WORTH = 5e7  # operations that a second thread takes longer to wake for than to do


class Stream:
    """A stream as its cache knows it. `begin`: the position of its first token."""

    def __init__(self, name: str, number: int, begin: int) -> None:
        self.name, self.begin = name, begin
        self.thread = Thread(name, "", number, 0, Block(name, name, number), [])

    @property
    def length(self) -> int:
        """Tokens written so far."""
        return self.thread.block.length


class Feed(NamedTuple):
    """Tokens to be appended to a stream, and how many tokens of other streams they see.

    Own tokens are seen in causal order. A count may include what the same pass writes.
    """

    stream: Stream
    tokens: list[int]
    sees: Sequence[tuple[Stream, int]]


class StreamCaches:
    """The caches of all streams of a run over the pages of one loaded model."""

    def __init__(
        self, loaded: LoadedModel, clock: Clock, emit: Emit, tell: bool = True, ahead: bool = False
    ) -> None:
        """`tell`: emit which stream sees which from where; otherwise a caller does, more finely.

        `ahead`: a feed may name what stands beside or after it; each of its tokens sees of that
        what stands no later than itself.
        """
        self.tell, self.ahead = tell, ahead
        self.loaded, self.clock, self.emit = loaded, clock, emit
        kv = loaded.storage.kv
        self.cache = Cache(kv.pages, kv.page_size, LeastRecentlyUsed(), clock, emit)
        self.holdings = ThreadPages(self.cache)
        dtype = str(loaded.model.dtype).removeprefix("torch.")
        variant = "fused" if loaded.model.fused else "kernels" if loaded.model.compiled else "torch"
        self.telling = StepEvents(emit, ForwardWork(loaded.model.config, dtype), variant)
        self.work = ForwardWork(loaded.model.config, dtype).work(Shape(1, 1, 0, 0))[0]
        self.streams: list[Stream] = []
        self.passes = 0  # forward passes so far
        self.ended = 0.0  # when the last one ended, seconds

    def open(self, name: str, begin: int = 0) -> Stream:
        """A new stream without tokens."""
        self.streams.append(Stream(name, len(self.streams), begin))
        return self.streams[-1]

    def close(self, stream: Stream) -> None:
        """Nobody reads or writes `stream` any more: its pages go."""
        self.holdings.release(stream.thread)

    def write(self, feeds: Sequence[Feed], lasts: float = 0.0) -> np.ndarray:
        """logits_RV after each feed's last token. One pass; a virtual clock moves by `lasts` s.

        Raises BadInput, and writes nothing, where pages are short, a position lies beyond the
        model's, or a feed would see what does not stand before it.
        """
        views = self._plan(feeds)
        start = self.clock.now()
        for feed, view in zip(feeds, views, strict=True) if self.tell else ():
            tell_sights(self.emit, start, feed.stream.thread, view)
        threads = [feed.stream.thread for feed in feeds]
        size = self.cache.page_size
        batch = gather(threads, views, self.holdings.tables, size)
        with _threads(self.work * len(batch.tokens_T)):
            logits = self.loaded.model.forward(batch, self.loaded.storage.kv)
        logits_RV: np.ndarray = logits.cpu().numpy()
        if self.clock.name == "virtual":
            self.clock.wait_until(start + lasts)
        now = self.ended = self.clock.now()
        self.telling.forward(start, now, "step", [len(feed.tokens) for feed in feeds], views)
        self.passes += 1
        return logits_RV

    def _plan(self, feeds: Sequence[Feed]) -> list[list[Sight]]:
        """Room for what is written, and each feed's view as sights, its own block last."""
        need = sum(self.holdings.need(f.stream.thread.block, len(f.tokens)) for f in feeds)
        if need > self.cache.available:
            raise BadInput(f"streams: {need} pages needed, {self.cache.available} left; give more")
        written = {feed.stream: feed.stream.length + len(feed.tokens) for feed in feeds}
        for feed in feeds:
            self._check(feed, written)
        for feed in feeds:
            self.holdings.append(feed.stream.thread, len(feed.tokens))
        views = []
        for feed in feeds:
            feed.stream.thread.feed = feed.tokens
            sights = [Sight(o.thread.block, o.begin, n) for o, n in feed.sees if n]
            own = feed.stream
            views.append([*sights, Sight(own.thread.block, own.begin, own.length)])
            self.holdings.see(own.thread, views[-1])
        return views

    def _check(self, feed: Feed, written: dict[Stream, int]) -> None:
        own = feed.stream
        last = own.begin + written[own]
        if last > self.loaded.model.config.max_positions:
            most = self.loaded.model.config.max_positions
            raise BadInput(f"stream {own.name}: position {last} of a model that has {most}")
        for other, count in feed.sees:
            if count > written.get(other, other.length):
                raise BadInput(
                    f"stream {own.name}: sees {count} tokens of {other.name}, "
                    f"which has {written.get(other, other.length)}"
                )
            # Attention over a view is causal in positions: what lies ahead would be left out.
            if not self.ahead and count and other.begin + count - 1 > own.begin + own.length:
                raise BadInput(
                    f"stream {own.name}: at position {own.begin + own.length} it would look ahead "
                    f"to {other.begin + count - 1} of {other.name}; begin it later"
                )


def warm(loaded: LoadedModel) -> None:
    """Compile what passes over streams need, so that no run's clock counts it."""
    caches = StreamCaches(loaded, VirtualClock(), lambda event: None, tell=False)
    one, two = caches.open("one"), caches.open("two", 8)
    caches.write([Feed(one, [0, 0], ())])
    caches.write([Feed(one, [0], ()), Feed(two, [0], [(one, 3)])])
    caches.write([Feed(two, [0], [(one, 3)])])
    caches.close(one)
    caches.close(two)


@contextmanager
def _threads(flops: float) -> Iterator[None]:
    """Small passes keep to one thread."""
    had = numba.get_num_threads()
    numba.set_num_threads(max(1, min(had, int(flops // WORTH))))
    try:
        yield
    finally:
        numba.set_num_threads(had)
