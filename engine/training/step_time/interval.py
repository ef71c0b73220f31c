"""Interval of a step's time: parts' own spreads carried through the step by a linear rule.

Each part's seconds are known up to a factor whose logarithm has a standard deviation (`spread` of
the constants): d ln(step) / d ln(part) carries it on. A run as a whole adds its own, and so does a
device that no run was fitted on, and a model with experts. Independent ones add up as squares.
"""

import math
from dataclasses import dataclass

from engine.training.step_time.step import PARTS, Prepared

NINE_IN_TEN = 1.645  # standard deviations to either side that hold 90% of a normal distribution
NUDGE = 1.05


@dataclass(frozen=True, slots=True)
class Interval:
    """Between which seconds nine in ten measurements are to lie. `shares`: d ln(step) / d ln(part).

    `own`: whether runs on this device were fitted.
    """

    low: float
    high: float
    deviation: float
    shares: dict[str, float]
    own: bool


def interval(prepared: Prepared) -> Interval:
    """Of a prepared run's step time."""
    seconds = prepared.at()[0]
    spread, shares = prepared.step.spread, {}
    total = spread.get("framework", 0.0) ** 2
    own = prepared.run.cluster.device in prepared.step.fitted
    if not own:
        total += spread.get("device", 0.0) ** 2
    if prepared.run.recipe.dtype == "float8":
        total += spread.get("float8", 0.0) ** 2
    if prepared.run.config().experts is not None:
        total += spread.get("mixture", 0.0) ** 2
    for part in PARTS:
        nudged = prepared.at({part: NUDGE})[0]
        shares[part] = math.log(nudged / seconds) / math.log(NUDGE)
        total += (shares[part] * spread.get(part, 0.0)) ** 2
    deviation = math.sqrt(total)
    wide = math.exp(NINE_IN_TEN * deviation)
    return Interval(seconds / wide, seconds * wide, deviation, shares, own)


def lifted(prepared: Prepared) -> dict[str, float]:
    """Step seconds with each bound lifted in turn: its part taking no time. Longest gain first."""
    seconds = prepared.at()[0]
    found = {part: prepared.at({part: 0.0})[0] for part in PARTS}
    ordered = sorted(found.items(), key=lambda each: each[1])
    return {part: value for part, value in ordered if value < seconds}
