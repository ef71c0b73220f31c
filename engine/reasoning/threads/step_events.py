"""StepEvents: emits what one decoding step did, its span with counted work and changed counters.

`Level(lane=<thread>, name="sees/<block>")` is the position at which a thread sees a block, -1 once
it does not; the lane "threads" carries the counters.
"""

from collections.abc import Callable, Sequence

from engine.cache.layouts import Sight
from engine.core.events import AnyEvent, Level, Span
from engine.core.tags import tag
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.reasoning.threads.thread import Thread
from engine.reasoning.threads.thread_pages import ThreadPages

GONE = -1.0
Emit = Callable[[AnyEvent], None]


def tell_sights(emit: Emit, now: float, thread: Thread, view: Sequence[Sight]) -> None:
    """The places of all blocks in the thread's view that are new or have moved."""
    places = {sight.block.name: sight.begin for sight in view}
    if places == thread.sees:
        return
    for name in thread.sees:
        if name not in places:
            emit(Level(now, thread.name, f"sees/{name}", GONE))
    for name, begin in places.items():
        if thread.sees.get(name) != begin:
            emit(Level(now, thread.name, f"sees/{name}", float(begin)))
    thread.sees = places


class StepEvents:
    """Remembers what was told last, so that only what changed is told."""

    def __init__(self, emit: Emit, work: ForwardWork, variant: str) -> None:
        self.emit, self.work, self.variant = emit, work, variant
        self.total = self.critical = 0  # tokens generated in all, and on the longest chain
        self.saved = 0  # tokens that threads have come to see beyond those computed
        self._levels: dict[str, float] = {}

    def seen(self, threads: Sequence[Thread], views: Sequence[Sequence[Sight]]) -> None:
        """What a step lets threads see for the first time, and what it has to compute for that."""
        for thread, view in zip(threads, views, strict=True):
            self.saved -= len(thread.feed)
            for sight in view:
                more = sight.seen - thread.known.get(sight.block, 0)
                if more > 0:
                    thread.known[sight.block] = sight.seen
                    self.saved += more

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
        self, now: float, said: Sequence[Thread], running: int, holdings: ThreadPages
    ) -> None:  # fmt: skip
        """Counters that changed now that each of `said` has said a token.

        Saved: tokens that threads were to read and had not to compute.
        """
        self.total += len(said)
        self.critical = max([self.critical, *(thread.depth for thread in said)])
        pool = holdings.cache.pool
        held = int(pool.references.sum())
        for name, value in (
            ("threads", running),
            ("tokens_total", self.total),
            ("tokens_critical", self.critical),
            ("tokens_saved", max(0, self.saved)),
            ("pages_used", holdings.cache.held),
            ("pages_shared", held - holdings.cache.held),
            ("pages_copied", holdings.copied),
        ):
            if self._levels.get(name) != value:
                self._levels[name] = value
                self.emit(Level(now, "threads", name, float(value)))
