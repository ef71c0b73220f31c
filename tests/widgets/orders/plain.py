"""No order."""

from typing import Literal

from tests.widgets.made_config import Order


class Plain(Order):
    kind: Literal["plain"] = "plain"
