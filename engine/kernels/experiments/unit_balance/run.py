"""The driver of balanced attention: computed and counted here, its pipeline on a virtual clock.

Errors and operation counts are of really computed tiles; the schedule and its utilisation are
modelled on the described device, with the rescaling rate that the computed tiles had.
"""

import torch

from engine.core.clock import VirtualClock
from engine.core.events import Level, Mark, Span
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
SHOWN = 12  # blocks of the schedule that are drawn
ERROR, RATE = "error against float64", "rescaled"  # levels
KINDS = ("maximum", "scale", "special", "polynomial", "total", "convert", "rescale")


def run(config: BalanceConfig, live: Live) -> None:
    """Compute and count; then model. Levels carry figures, spans the schedule."""
    clock = VirtualClock()
    on = device(config.device)
    live.open(config, clock, lanes=list(UNITS), roofs=roofs_of(on))
    counts = _compare(config, live, clock)
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


def _compare(config: BalanceConfig, live: Live, clock: VirtualClock) -> Counts:
    """The plain softmax and the config's, computed and held to float64; the latter's counts."""
    draw = torch.Generator().manual_seed(live.seed + config.seed)
    shape = (config.heads, config.tokens, config.dim)
    q, k, v = (torch.randn(shape, generator=draw) for _ in range(3))
    operands = q * config.spread, k, v
    true, counts = tiles_cpu.truth(*operands), Counts()
    for lane, how in (("plain", PLAIN), ("balanced", config.softmax)):
        live.poll(clock.now())
        found, counts = tiles_cpu.attention(*operands, how)
        error = tiles_cpu.root_mean_square(found.bfloat16(), true)
        figures = {ERROR: error, RATE: counts.rate, "operations": counts.operations()}
        for name, value in (figures | {kind: getattr(counts, kind) for kind in KINDS}).items():
            live.emit(Level(clock.now(), lane, name, float(value)))
    return counts
