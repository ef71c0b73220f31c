"""No speculation: a step gives a request one token."""

from typing import Literal

from engine.inference.policies.speculation import Speculation


class NoSpeculation(Speculation):
    """One token a request and step."""

    kind: Literal["none"] = "none"
