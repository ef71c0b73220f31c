"""An order with a knob of its own."""

from typing import Literal

from engine.core.config import knob
from tests.widgets.made_config import Order


class Weighted(Order):
    kind: Literal["weighted"] = "weighted"
    weight: float = knob(0.5, "How much.", low=0.0, high=1.0)
