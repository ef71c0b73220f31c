"""What a step of thinking looks like from outside: its events, in the order of time.

`Level(lane=<thread>, name="sees/<block>")` is the position at which a thread sees a block, -1 once
it does not; the lane "threads" carries the counters.
"""

from collections.abc import Callable, Iterable, Sequence

from engine.cache.layouts import Sight
from engine.core.events import AnyEvent, Level, Span
from engine.core.tags import tag
from engine.inference.forward_work import ForwardWork, Shape
from engine.reasoning.holdings import Holdings
from engine.reasoning.thread import Thread

GONE = -1.0
Emit = Callable[[AnyEvent], None]


def tell_sights(emit: Emit, now: float, thread: Thread, view: Sequence[Sight]) -> None:
    """The places of all blocks in the thread's view that are new or have moved."""
    places = {sight.block.name: sight.begin for sight in view}
    if places == thread.sees:
        return
    for name in thread.sees.keys() - places.keys():
        emit(Level(now, thread.name, f"sees/{name}", GONE))
    for name, begin in places.items():
        if thread.sees.get(name) != begin:
            emit(Level(now, thread.name, f"sees/{name}", float(begin)))
    thread.sees = places


class Telling:
    """Remembers what was told last, so that only what changed is told."""

    def __init__(self, emit: Emit, work: ForwardWork, variant: str) -> None:
        self.emit, self.work, self.variant = emit, work, variant
        self._levels: dict[str, float] = {}

    def forward(
        self, start: float, now: float, name: str, fed: Sequence[int],
        views: Sequence[Sequence[Sight]],
    ) -> None:  # fmt: skip
        """A forward pass, its work counted: what several see is read once."""
        layers = self.work.config.layers
        pairs = sum(
            count * sum(sight.seen for sight in view) - count * (count - 1) // 2
            for count, view in zip(fed, views, strict=True)
        )
        read = {sight.block: sight.seen for view in views for sight in view}
        shape = Shape(sum(fed), len(fed), layers * pairs, layers * (sum(read.values()) + sum(fed)))
        flops, moved = self.work.work(shape)
        phase = "decode" if name == "step" else "prefill"
        facts = tag(
            phase=phase, variant=self.variant, dtype=self.work.dtype,
            threads=len(fed), tokens=sum(fed), sights=sum(map(len, views)),
        )  # fmt: skip
        self.emit(Span(now, "engine", name, start, flops, moved, facts))

    def levels(
        self, now: float, threads: Iterable[Thread], views: Sequence[Sequence[Sight]],
        holdings: Holdings,
    ) -> None:  # fmt: skip
        """Counters that changed. Saved: tokens seen beyond the first thread that sees each."""
        listed = list(threads)
        seen = sum(sight.seen for view in views for sight in view)
        stored = sum({s.block: s.seen for view in views for s in view}.values())
        pool = holdings.cache.pool
        held = int(pool.references.sum())
        for name, value in (
            ("threads", sum(thread.running for thread in listed)),
            ("tokens_total", sum(len(thread.tokens) for thread in listed)),
            ("tokens_critical", max((thread.depth for thread in listed), default=0)),
            ("tokens_saved", seen - stored),
            ("pages_used", holdings.cache.held),
            ("pages_shared", held - holdings.cache.held),
            ("pages_copied", holdings.copied),
        ):
            if self._levels.get(name) != value:
                self._levels[name] = value
                self.emit(Level(now, "threads", name, float(value)))
