"""What a thread may use: tokens of its own, tokens on its critical path, seconds of its clock.

In comes what a person writes, such as `40 tokens`, `120 critical tokens` or `20 ms`; whatever has
no unit counts tokens. On a described device seconds are modelled ones.
"""

import re
from typing import NamedTuple

from engine.core.errors import BadInput

SAID = re.compile(r"\s*([-+]?[\d.]+(?:e[-+]?\d+)?)\s*([^\d\s].*?)?\s*", re.ASCII | re.IGNORECASE)
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}
UNITS = "tokens, critical tokens, s, ms or µs"


class Budget(NamedTuple):
    """Zero: as much as the run's config says."""

    tokens: int = 0
    critical: int = 0
    seconds: float = 0.0


def budget(said: object) -> Budget:
    """The budget that `said` names. Raises BadInput for an unknown unit, zero, or less."""
    found = SAID.fullmatch(str(said)[:80])
    if found is None:
        raise BadInput(f"budget {said!r}: a number and its unit: {UNITS}")
    try:
        amount = float(found[1])
    except ValueError:
        raise BadInput(f"budget {said!r}: {found[1]!r} is no number") from None
    unit = (found[2] or "tokens").lower()
    if unit in SECONDS:
        if not 0 < amount < 1e12:
            raise BadInput(f"budget {said!r}: give more than 0 {unit}")
        return Budget(seconds=amount * SECONDS[unit])
    if unit not in ("token", "tokens", "critical", "critical token", "critical tokens"):
        raise BadInput(f"budget {said!r}: no unit {found[2]!r}; give {UNITS}")
    if amount != int(amount) or not 1 <= amount < 1 << 40:
        raise BadInput(f"budget {said!r}: give a whole number of tokens, at least 1")
    count = int(amount)
    return Budget(tokens=count) if unit.startswith("token") else Budget(critical=count)
