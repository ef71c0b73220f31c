"""The driver of balanced attention: computed and counted here, its pipeline on a virtual clock.

Errors and operation counts are of really computed tiles; the schedule and its utilisation are
modelled on the described device, with the rescaling rate that the computed tiles had.
"""

import torch

from engine.core.clock import VirtualClock
from engine.core.config import update
from engine.core.events import Level, Mark, Span
from engine.core.plot import Plot
from engine.core.run import Live
from engine.core.tags import tag
from engine.hardware import device, roofs_of
from engine.kernels.experiments.unit_balance import tiles_cpu
from engine.kernels.experiments.unit_balance.config import BalanceConfig, Softmax
from engine.kernels.experiments.unit_balance.pipeline import (
    TILE,
    UNITS,
    Pipeline,
    Step,
    utilisation,
    waves,
)
from engine.kernels.experiments.unit_balance.tiles_cpu import Counts

PLAIN = Softmax(tau=0.0, share=0.0)  # the online softmax: rescales at every block
TAUS = (0.0, 2.0, 4.0, 8.0, 16.0)
SHOWN = 12  # blocks of the schedule that are drawn
TAU = "τ (powers of 2)"
ERRORS = Plot("error against float64", TAU, "error of bfloat16 outputs, relative")
RATES = Plot("rescaled", TAU, "part of looks that rescale")
ERROR, RATE = ERRORS.title, RATES.title  # levels too
KINDS = ("maximum", "scale", "special", "polynomial", "total", "convert", "rescale")


def run(config: BalanceConfig, live: Live) -> None:
    """Compute and count; then model. Levels carry figures, spans the schedule, curves the sweep."""
    clock = VirtualClock()
    on = device(config.device)
    live.open(config, clock, plots=[ERRORS, RATES], lanes=list(UNITS), roofs=roofs_of(on))
    tiles = _Tiles(config, live, clock)
    counts = tiles.compare()
    tiles.sweep()
    pipeline = Pipeline(config, on, counts.rate)
    blocks = -(-config.modelled_tokens // TILE)
    steps = list(pipeline.steps(blocks))
    reached = utilisation(steps, on) * waves(config, on)
    for step in steps:
        if step.block < SHOWN:
            clock.wait_until(step.stop)
            live.emit(_span(step, config.device))
    live.emit(Level(clock.now(), "modelled", "utilisation of peak", reached))
    text = f"{reached:.1%} of {on.name}'s bfloat16 peak, {blocks} blocks of keys (modelled)"
    live.emit(Mark(clock.now(), "modelled", "utilisation", text))


def _span(step: Step, slug: str) -> Span:
    said = tag(
        task=f"tile_{step.tile}_block_{step.block}", dtype="bfloat16", grade="modelled", device=slug
    )
    return Span(step.stop, step.unit, step.name, step.start, flops=step.flops, tag=said)


class _Tiles:
    """The operands of a run, their truth, and what each way of computing gave."""

    def __init__(self, config: BalanceConfig, live: Live, clock: VirtualClock) -> None:
        self.config, self.live, self.clock = config, live, clock
        draw = torch.Generator().manual_seed(live.seed + config.seed)
        shape = (config.heads, config.tokens, config.dim)
        q, k, v = (torch.randn(shape, generator=draw) for _ in range(3))
        self.operands = q * config.spread, k, v
        self.truth = tiles_cpu.truth(*self.operands)

    def attend(self, how: Softmax) -> tuple[float, Counts]:
        """Error of the bfloat16 output against float64, and the operations counted."""
        self.live.poll(self.clock.now())
        found, counts = tiles_cpu.attention(*self.operands, how)
        return tiles_cpu.root_mean_square(found.bfloat16(), self.truth), counts

    def compare(self) -> Counts:
        """The config's softmax and the plain one, as levels."""
        counts = Counts()
        for lane, how in (("plain", PLAIN), ("balanced", self.config.softmax)):
            error, counts = self.attend(how)
            self.level(lane, ERROR, error)
            self.level(lane, RATE, counts.rate)
            self.level(lane, "operations", counts.operations())
            for kind in KINDS:
                self.level(lane, kind, getattr(counts, kind))
        return counts

    def sweep(self) -> None:
        """Error and rescaling rate over τ."""
        errors, parts = [], []
        for number, tau in enumerate(TAUS):
            self.live.report("sweeping τ", number, len(TAUS))
            error, counts = self.attend(update(self.config.softmax, {"tau": tau}))
            errors.append(error)
            parts.append(counts.rate)
        for plot, values in ((ERRORS, errors), (RATES, parts)):
            points = list(zip(TAUS, values, strict=True))
            self.live.curve(self.clock.now(), plot, "balanced", points)

    def level(self, lane: str, name: str, value: float) -> None:
        """A figure."""
        self.live.emit(Level(self.clock.now(), lane, name, float(value)))
