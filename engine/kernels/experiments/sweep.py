"""A sweep: operators at chosen shapes, run here and placed under this machine's roofs.

In comes what to run, in which dtype, by which variant and with how many threads; out goes a span
for each call, and beside them the time that a described device would take by its roofs. The first
call of each, which may compile, is no part of the figures.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from time import perf_counter
from typing import Any, Literal

from engine.core.clock import WallClock
from engine.core.config import Choice, Config, knob
from engine.core.errors import BadInput
from engine.core.events import Mark, Span
from engine.core.memory import require
from engine.core.names import suggest
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware import Device, bound, device, roofs_of
from engine.hardware.counters import Counters, counters
from engine.hardware.measure import measure
from engine.kernels.experiments.shapes.all import All
from engine.kernels.experiments.shapes.shapes import Shapes
from engine.kernels.operator import Arguments, Case, Operator, Variant, Work

COLD = 2.0  # times the last cache: what cycling through copies of the arguments must pass
COPIES = 512  # made of one case's arguments at most
ROOM = 0.8  # of a cache level that a working set may fill and still be taken to stay there
LEAST = 2  # calls of each case, however long they take
NONE = "none"


class Sweep(Config):
    """What to run under the roofs, and how."""

    operator: Choice[Shapes] = knob(make=All, doc="What to run")
    dtype: Literal["float32", "bfloat16", "float16"] = knob(
        "float32", "Numbers of the inputs", called="Number format"
    )
    variant: str = knob("", "Algorithm, by its name; empty: the fastest of each operator")
    threads: int = knob(0, "Threads; 0: all", low=0, high=1024)
    inputs: Literal["cold", "warm"] = knob(
        "cold", "Inputs from main memory (other copies at each call), or the same again"
    )
    beside: str = knob("", "A described device to model beside; empty: none", group="more")
    seconds: float = knob(
        0.1, "Time to repeat each case for", low=0.0, high=10.0, unit="s", group="more"
    )
    seed: int = knob(0, "Seed of the inputs", low=0, high=2**31 - 1, group="more")


def run(
    config: Sweep,
    live: Live,
    refresh: bool = False,
    meanwhile: AbstractContextManager[Any] | None = None,
) -> None:
    """The driver; `refresh`: measure the machine again first, within `meanwhile`.

    Raises BadInput (unknown device).
    """
    require(2 * 4 * config.operator.numbers(), "these shapes", "make them smaller")  # one to cast
    ghost = None if config.beside in ("", NONE) else device(config.beside)
    machine = measure(
        refresh,
        say=lambda text: live.report(f"measuring this machine: {text}", 0, 0),
        meanwhile=meanwhile,
    )
    roofs = roofs_of(machine, config.threads) + (roofs_of(ghost) if ghost else [])
    clock = WallClock()
    live.open(config, clock, roofs=roofs)
    cases = list(config.operator.cases())
    _require_variant(config.variant, cases)
    counting, why = counters()
    if machine.caution:
        live.emit(Mark(clock.now(), "machine", "caution", f"roofs {machine.caution}"))
    if why:
        live.emit(Mark(clock.now(), "sweep", "counters", why))
    bench = Bench(config, machine, live, clock, counting)
    with _Threads(config.threads):
        for place, (operator, case) in enumerate(cases):
            live.report(f"{operator.name} {case.name}", place, len(cases))
            work = bench.run(operator, case)
            if work is not None and ghost is not None:
                bench.model(ghost, operator, case, work)
    if counting is not None:
        counting.close()


def _require_variant(name: str, cases: list[tuple[Operator, Case]]) -> None:
    """Raises BadInput where no operator has the variant asked for."""
    known = {variant: None for operator, _ in cases for variant in operator.variants()}
    if name and name not in known:
        raise BadInput(f"variant {name!r}: no such variant; {suggest(name, known)}")


class _Threads:
    """So many threads for kernels and torch meanwhile; 0 leaves them as they are."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __enter__(self) -> None:
        import numba
        import torch

        self.before = numba.get_num_threads(), torch.get_num_threads()
        if self.count:
            self._set(self.count, self.count)

    def __exit__(self, *_: object) -> None:
        if self.count:
            self._set(*self.before)

    @staticmethod
    def _set(ours: int, torchs: int) -> None:
        import numba
        import torch

        numba.set_num_threads(min(ours, numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]
        torch.set_num_threads(torchs)


class Bench:
    """Runs one operator after another at one shape each, and emits what came of it."""

    def __init__(
        self,
        config: Sweep,
        machine: Device,
        live: Live,
        clock: WallClock,
        counting: Counters | None,
    ) -> None:
        self.config, self.machine, self.counting = config, machine, counting
        self.live, self.clock = live, clock

    def run(self, operator: Operator, case: Case) -> Work | None:
        """Call it until its time is over; None, and a line in the log, where it cannot run here."""
        import torch

        given = case.make(self.config.seed, getattr(torch, self.config.dtype))
        wanted = self.config.variant
        try:
            variant = operator.pick(given, wanted if wanted in operator.variants() else "")
        except BadInput as fault:
            self.live.emit(Mark(self.clock.now(), operator.name, "left out", str(fault)))
            return None
        work = (variant.work or operator.work)(given)
        told = self._tag(case, variant, work)
        with torch.inference_mode():
            variant.call(**given)
            self._calls(operator.name, variant, self._copies(given, work), work, told)
        return work

    def _calls(
        self, name: str, variant: Variant, copies: list[Arguments], work: Work, told: str
    ) -> None:
        live, clock, moved = self.live, self.clock, work.bytes["memory"]
        begun, calls = perf_counter(), 0
        while calls < LEAST or perf_counter() - begun < self.config.seconds:
            live.poll(clock.now())
            given = copies[calls % len(copies)]
            missed = self.counting.misses() if self.counting else 0
            start = clock.now()
            variant.call(**given)
            stop = clock.now()
            found = told
            if self.counting:
                found = f"{told} {tag(misses=self.counting.misses() - missed)}"
            live.emit(Span(stop, name, variant.name, start, work.flops, moved, found))
            calls += 1

    def _tag(self, case: Case, variant: Variant, work: Work) -> str:
        levels = {name: size for name, size in work.bytes.items() if name != "memory"}
        return tag(
            shape=case.name,
            dtype=self.config.dtype,
            variant=variant.name,
            specials=work.specials or "",
            resident=self._resident(work),
            **levels,
        )

    def _resident(self, work: Work) -> str:
        """The nearest cache that holds the working set of a call that finds it warm."""
        if self.config.inputs == "cold":
            return ""
        size, caches = work.bytes["memory"], self.machine.caches
        threads = self.config.threads or max(self.machine.threads, 1)
        for level in sorted(caches):
            shared = level == "L3"
            if size <= ROOM * caches[level] * (1 if shared else threads):
                return level
        return ""

    def _copies(self, given: Arguments, work: Work) -> list[Arguments]:
        """Copies of the arguments that together do not fit the last cache; one where warm."""
        if self.config.inputs == "warm":
            return [given]
        last = max(self.machine.caches.values(), default=2.0**25)
        wanted = int(COLD * last / max(work.bytes["memory"], 1.0)) + 1
        return [given, *(_clone(given) for _ in range(min(wanted, COPIES) - 1))]

    def model(self, ghost: Device, operator: Operator, case: Case, work: Work) -> None:
        """What the roofs of a described device ask for the same work, launch included."""
        if not work.flops:
            return
        wanted: str = self.config.dtype
        dtype = wanted if wanted in ghost.peaks else next(iter(ghost.peaks))
        moved = work.bytes["memory"]
        took = bound(ghost.at_best(), work.flops, moved, dtype).seconds
        self.clock.wait_until(took)  # a span cannot have begun before its run
        now = self.clock.now()
        facts = tag(shape=case.name, dtype=dtype, grade="modelled", device=ghost.slug)
        name, start = operator.name, now - took
        self.live.emit(Span(now, name, "by its roofs", start, work.flops, moved, facts))


def _clone(given: Arguments) -> Mapping[str, Any]:
    """The same arguments in other memory."""
    return {
        name: value.clone() if hasattr(value, "clone") else value for name, value in given.items()
    }
