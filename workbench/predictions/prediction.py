"""A prediction as figures with intervals, where the time goes, and what would help.

`workbench predict` prints one; each kind of run (training, serving) makes its own from a TOML file.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any


@dataclass(frozen=True, slots=True)
class Estimate:
    """A modelled figure and the interval that is to hold nine in ten measurements of it."""

    value: float
    low: float
    high: float
    unit: str = ""

    def per(self, number: float, unit: str) -> "Estimate":
        """`number` over it: seconds become a rate, and the ends change places."""
        ends = (self.value, self.high, self.low)
        value, low, high = (number / each if each else inf for each in ends)
        return Estimate(value, low, high, unit)

    def times(self, number: float, unit: str) -> "Estimate":
        """So many of it."""
        return Estimate(self.value * number, self.low * number, self.high * number, unit)

    def row(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high, "unit": self.unit}


@dataclass(frozen=True)
class Prediction:
    """What is told of a run.

    `figures`: by name, the first one the most asked for. `parts`: seconds by what they go to, which
    sum to the first figure's; `hidden`: seconds beside them that nobody waits for. `lifted`: the
    first figure's seconds with a bound gone, by bound, the greatest gain first. `notes`: what a
    reader must know; `commands`: how to start it; `schedule`: the command that plays its schedule.
    """

    kind: str
    run: str
    figures: Mapping[str, Estimate]
    parts: Mapping[str, float]
    hidden: Mapping[str, float] = field(default_factory=dict)
    lifted: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    schedule: str = ""

    @property
    def bound(self) -> str:
        """The part that takes longest."""
        return max(self.parts, key=lambda part: self.parts[part])

    @property
    def sentence(self) -> str:
        """What bounds it, and what would help most."""
        total = sum(self.parts.values())
        many = self.bound.endswith("s")  # products, rows, experts, collectives
        takes, share = "take" if many else "takes", self.parts[self.bound] / total
        told = f"{self.bound} {takes} {share:.0%} of a step"
        if not self.lifted:
            return f"{told}."
        most, left = min(self.lifted.items(), key=lambda each: each[1])
        which = most if most != self.bound else "them" if many else "it"
        return f"{told}; without {which} a step would be {total / left:.2f} times as fast."

    def row(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "kind": self.kind,
            "run": self.run,
            "grade": "modelled",
            "figures": {name: each.row() for name, each in self.figures.items()},
            "parts_s": dict(self.parts),
            "hidden_s": dict(self.hidden),
            "bound": self.bound,
            "lifted_s": dict(self.lifted),
            "memory_B": dict(self.memory),
            "notes": list(self.notes),
            "commands": list(self.commands),
            "schedule": self.schedule,
        }
