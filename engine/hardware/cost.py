"""How long an operator takes on a described device, and between which times it would be found.

In come a device and shapes; out come seconds, an interval and the roof that takes most of the time.
The interval is what held-out measurements showed of the operator (`engine.hardware.cost_curves`).
"""

import math
from dataclasses import dataclass

from engine.core.errors import BadInput
from engine.hardware import collectives, cost_curves
from engine.hardware.cost_curves import Curves, Parts
from engine.hardware.device import Device
from engine.hardware.link import Link, link

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True, slots=True)
class Predicted:
    """Seconds with the interval that nine in ten held-out measurements lay in.

    `roof`: a dtype (matrix units), "bandwidth", "launch", or what else takes longest.
    """

    seconds: float
    low: float
    high: float
    roof: str


class CostModel:
    """Operators' times on one device, with the shipped constants or others."""

    def __init__(self, device: Device, curves: Curves | None = None) -> None:
        self.device = device
        self.curves = curves or cost_curves.curves()

    def matmul(self, m: int, n: int, k: int, dtype: str = "bfloat16") -> Predicted:
        """x[m, k] · W[k, n]."""
        return self._told("matmul", cost_curves.matmul(self.device, self.curves, m, n, k, dtype))

    def prefill(
        self, batch: int, tokens: int, heads: int, kv_heads: int, dim: int, dtype: str = "bfloat16"
    ) -> Predicted:
        """Causal attention of `batch` prompts of `tokens` tokens."""
        parts = cost_curves.prefill(
            self.device, self.curves, batch, tokens, heads, kv_heads, dim, dtype
        )
        return self._told("prefill", parts)

    def decode(
        self, batch: int, context: int, kv_heads: int, dim: int, dtype: str = "bfloat16"
    ) -> Predicted:
        """One new token for each of `batch` sequences that see `context` tokens."""
        parts = cost_curves.decode(self.device, self.curves, batch, context, kv_heads, dim, dtype)
        return self._told("decode", parts)

    def rows(
        self, name: str, count: int, width: int, numbers: int, dtype: str = "bfloat16"
    ) -> Predicted:
        """`count` rows of `width` numbers; `numbers` read and written for each."""
        parts = cost_curves.rows(self.device, self.curves, name, count, width, numbers, dtype)
        return self._told(name, parts)

    def collective(self, name: str, ranks: int, size: float) -> Predicted:
        """A collective over `size` bytes among devices joined by the device's own link."""
        if not self.device.scale_up:
            raise BadInput(f"device {self.device.name}: its sheet names no link to its kind")
        return self._told(
            "collective", collective(self.curves, link(self.device.scale_up), name, ranks, size)
        )

    def _told(self, name: str, parts: Parts) -> Predicted:
        seconds = float(_one(parts.seconds))
        roofs = {roof: float(_one(value)) for roof, value in parts.roofs.items()}
        roof = max(roofs, key=lambda each: roofs[each])
        known = self.curves.intervals.get(name)
        if known is None:
            return Predicted(seconds, seconds, seconds, roof)
        return Predicted(
            seconds, seconds * math.exp(-known.high), seconds * math.exp(-known.low), roof
        )


def collective(curves: Curves, by: Link, name: str, ranks: int, size: float) -> Parts:
    """The ring of `engine.hardware.collectives` by the better of two protocols."""
    if name not in COLLECTIVES:
        raise BadInput(f"collective {name!r}: not known; one of: {', '.join(COLLECTIVES)}")
    c = curves.collective
    ring = getattr(collectives, "ring_all_reduce" if name == "all_reduce" else name)
    at_once, late = (
        float(ring(Link(name=by.name, bandwidth=by.bandwidth * part, latency=c.step), ranks, size))
        for part in (c.at_once, c.bandwidth)
    )
    wire = min(at_once, c.begin + late)
    return Parts(c.launch + wire, {"link": wire, "launch": c.launch})


def with_intervals(curves: Curves, intervals: dict[str, cost_curves.Interval]) -> Curves:
    """The same constants with other held-out errors."""
    return curves.model_copy(update={"intervals": intervals})


def _one(value: object) -> float:
    return value.item() if hasattr(value, "item") else float(value)  # type: ignore[arg-type]
