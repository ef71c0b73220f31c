"""The driver of a backward in pieces: gradients of one step, each way in turn, with its memory.

Emits a span for each phase, bytes alive over time, and levels for each way's peak, loss, error
against autograd of the dense forward, and seconds.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

import torch

from engine.core.clock import WallClock
from engine.core.events import Level, Span
from engine.core.run import Live
from engine.kernels.threads import torch_threads
from engine.training.streamed.config import StreamedConfig
from engine.training.streamed.memory_fit import watched
from engine.training.streamed.method import Method
from engine.training.streamed.methods.autograd import Checkpointing, Plain
from engine.training.streamed.methods.streamed import Streamed
from engine.training.streamed.model import Model
from engine.training.streamed.problem import batch, clear, truth, weights

ALIVE, PEAK, LOSS, ERROR, SECONDS = (
    "memory/activations", "peak bytes", "loss", "error", "seconds",
)  # fmt: skip
MOST_EXACT = 1024  # tokens in all whose scores of all pairs the truth may hold
SMALL = 512  # width up to which threads only wait for one another


def run(config: StreamedConfig, live: Live) -> None:
    """One step's gradients, as `config` says."""
    with torch_threads(1 if config.hidden <= SMALL else torch.get_num_threads()):
        _run(config, live)


def _run(config: StreamedConfig, live: Live) -> None:
    clock, methods = WallClock(), ways(config)
    live.open(config, clock, lanes=[m.kind for m in methods], memory_limit=config.room)
    shape = config.model()
    found, given = (
        weights(shape, config.seed),
        batch(shape, config.batch, config.tokens, config.seed),
    )
    model = Model(shape, found, config.tile)
    true = None
    clear(found)
    if config.exact and config.batch * config.tokens <= MOST_EXACT:
        truth(shape, found, given, config.objective)
        true = {name: w.grad.clone() for name, w in found.items() if w.grad is not None}
    for method in methods if config.watch else ():
        live.poll(clock.now())
        watch = _Watch(live, clock, method.kind)
        loss, most = watched(method, model, given, config.objective, watch.phase, watch.told)
        for name, value in ((PEAK, float(most)), (LOSS, loss)):
            live.emit(Level(clock.now(), method.kind, name, value))
        if true is not None:
            slopes = {name: w.grad for name, w in found.items() if w.grad is not None}
            live.error(
                clock.now(), method.kind, list(slopes.values()), [true[name] for name in slopes]
            )
    _time(config, methods, model, live, clock)


def ways(config: StreamedConfig) -> list[Method]:
    """The chosen way, last, and before it the others where they are wanted."""
    if not config.beside:
        return [config.method]
    others = (Plain(), Checkpointing(), Streamed())
    return [m for m in others if m.kind != config.method.kind] + [config.method]


class _Watch:
    """Tells phases as spans, and bytes alive whenever they changed by a part worth drawing."""

    def __init__(self, live: Live, clock: WallClock, lane: str) -> None:
        self.live, self.clock, self.lane = live, clock, lane
        self.last, self.most = 0, 1

    def told(self, alive: int) -> None:
        self.most = max(self.most, alive)
        if abs(alive - self.last) * 16 > self.most:
            self.last = alive
            self.live.emit(Level(self.clock.now(), self.lane, ALIVE, float(alive)))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = self.clock.now()
        yield
        self.live.emit(Span(self.clock.now(), self.lane, name, start))


def _time(
    config: StreamedConfig, methods: list[Method], model: Model, live: Live, clock: WallClock
) -> None:
    """Rounds in turns, nothing watched: the seconds of each way in each of them."""
    given = batch(model.config, config.batch, config.tokens, config.seed)
    found = dict(model.weights)
    for turn in range(config.rounds):
        for method in methods:
            live.poll(clock.now())
            live.report("timed rounds", turn, config.rounds)
            clear(found)
            begun = perf_counter()
            method.gradients(model, given, config.objective)
            live.emit(Level(clock.now(), method.kind, SECONDS, perf_counter() - begun))
