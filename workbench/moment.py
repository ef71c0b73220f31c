"""A moment of a run as a person writes it: seconds since it began, or a share of it."""

import math

from engine.core.errors import BadInput


def moment(text: str) -> tuple[float, bool]:
    """The value, and whether it is a share of the run (`40%`) and not seconds. Raises BadInput."""
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise BadInput(f"at={text[:40]}: no moment; give seconds, or a share of the run as 40%")
    return (value / 100, True) if text.endswith("%") else (value, False)
