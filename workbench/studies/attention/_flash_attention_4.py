"""Figures of balanced attention by lane and name, and its curves over the rescaling threshold."""

from engine.core.events import Level
from engine.core.log import Log
from engine.core.plot import Plot
from engine.kernels.experiments.unit_balance.run import ERROR, RATE
from workbench.study import Sweep


def levels(log: Log) -> dict[tuple[str, str], float]:
    """Every figure of a run by lane and name."""
    return {(level.lane, level.name): level.value for level in log.of(Level)}


def over_tau(level: str, y: str) -> Sweep:
    """A level of the balanced softmax over how far a row's largest score may grow."""
    return Sweep(
        Plot(level, "τ (powers of 2)", y),
        ("softmax.tau", (0.0, 2.0, 4.0, 8.0, 16.0)),
        lambda log: levels(log)["balanced", level],
        {"balanced": {}},
    )


OVER_TAU = (
    over_tau(ERROR, "error of bfloat16 outputs, relative"),
    over_tau(RATE, "part of looks that rescale"),
)
