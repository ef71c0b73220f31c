"""Numbers of a JSON schema that a grammar would hold its answers to wrongly: llguidance reads them
as float64 and the bounds of integers as int64."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from engine.core.errors import BadInput

EXACT, LARGEST = 1 << 53, (1 << 63) - 1
LEAST = ("minimum", "exclusiveMinimum")
BOUNDS = (*LEAST, "maximum", "exclusiveMaximum", "multipleOf")
VALUES = ("const", "enum")


def check_numbers(schema: Any) -> None:
    """Raises BadInput for one that would be rounded."""
    for where, number in _numbers(schema):
        if where in BOUNDS and not _harmless(where, number):
            raise BadInput(
                f"schema: {where} is beyond 2^53, where it is not held exactly; leave it out"
            )
        if where in VALUES and type(number) is int and not _printed(number):
            raise BadInput(
                f"schema: a number of {where} is beyond what is held exactly; give a text"
            )


def _numbers(schema: Any) -> Iterator[tuple[str, int | float]]:
    """Each bound and value, with the keyword that it stands under."""
    left: list[tuple[str, Any]] = [("", schema)]
    while left:
        where, value = left.pop()
        if isinstance(value, dict):
            inside = where if where in VALUES else ""
            left += [(inside or key, one) for key, one in value.items()]
        elif isinstance(value, list):
            left += [(where, one) for one in value]
        elif type(value) in (int, float):
            yield where, value


def _harmless(where: str, bound: int | float) -> bool:
    """Whether it is held exactly, or lets through every int64, which is all that is written."""
    if abs(bound) <= EXACT:
        return True
    return where != "multipleOf" and (-bound if where in LEAST else bound) >= LARGEST


def _printed(number: int) -> bool:
    """Whether a float64 of it is written as the same number."""
    try:
        return int(Decimal(repr(float(number)))) == number
    except OverflowError:
        return False
