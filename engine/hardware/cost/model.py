"""How long an operator takes on a described device, and between which times it would be found.

In come a device and shapes; out come seconds, an interval and the roof that takes most of the time.
The interval is what held-out measurements showed of the operator (`engine.hardware.cost.curves`).
"""

import math
from dataclasses import dataclass

from engine.core.errors import BadInput
from engine.hardware.cost import attention, curves
from engine.hardware.cost.constants import DEFAULT, Constants, constants
from engine.hardware.cost.curves import Parts
from engine.hardware.device import Device
from engine.hardware.link import link


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
    """Operators' times on one device by constants, a shipped set of them or others."""

    def __init__(self, device: Device, found: Constants | None = None) -> None:
        self.device = device
        self.constants = found or constants(DEFAULT)

    def matmul(self, m: int, n: int, k: int, dtype: str = "bfloat16") -> Predicted:
        """x[m, k] · W[k, n]."""
        return self._told("matmul", curves.matmul(self.device, self.constants, m, n, k, dtype))

    def prefill(
        self, batch: int, tokens: int, heads: int, kv_heads: int, dim: int, dtype: str = "bfloat16"
    ) -> Predicted:
        """Causal attention of `batch` prompts of `tokens` tokens."""
        parts = attention.prefill(
            self.device, self.constants, batch, tokens, heads, kv_heads, dim, dtype
        )
        return self._told("prefill", parts)

    def decode(
        self, batch: int, context: int, kv_heads: int, dim: int, dtype: str = "bfloat16"
    ) -> Predicted:
        """One new token for each of `batch` sequences that see `context` tokens."""
        parts = attention.decode(self.device, self.constants, batch, context, kv_heads, dim, dtype)
        return self._told("decode", parts)

    def rows(
        self, name: str, count: int, width: int, numbers: int, dtype: str = "bfloat16"
    ) -> Predicted:
        """`count` rows of `width` numbers; `numbers` read and written for each."""
        parts = curves.rows(self.device, self.constants, name, count, width, numbers, dtype)
        return self._told(name, parts)

    def collective(self, name: str, ranks: int, size: float) -> Predicted:
        """A collective over `size` bytes among devices joined by the device's own link."""
        if not self.device.scale_up:
            raise BadInput(f"device {self.device.name}: its sheet names no link to its kind")
        by = link(self.device.scale_up)
        parts = curves.collective(self.device, by, self.constants, name, ranks, size)
        return self._told("collective", parts)

    def _told(self, name: str, parts: Parts) -> Predicted:
        seconds = float(_one(parts.seconds))
        roofs = {roof: float(_one(value)) for roof, value in parts.roofs.items()}
        roof = max(roofs, key=lambda each: roofs[each])
        known = self.constants.intervals.get(name)
        if known is None:
            return Predicted(seconds, seconds, seconds, roof)
        return Predicted(
            seconds, seconds * math.exp(-known.high), seconds * math.exp(-known.low), roof
        )


def _one(value: object) -> float:
    return value.item() if hasattr(value, "item") else float(value)  # type: ignore[arg-type]
