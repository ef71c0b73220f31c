"""Single numbers or numpy arrays of them, rounded and compared alike.

Of single ones without numpy, which takes a microsecond for each: a simulator asks for millions.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

Number: TypeAlias = Any  # a float, or a numpy array of them
SINGLE = (float, int)


def up(x: Number) -> Number:
    """Rounded up."""
    return math.ceil(x) if isinstance(x, SINGLE) else np.ceil(x)


def most(a: Number, b: Number) -> Number:
    """The larger."""
    return max(a, b) if isinstance(a, SINGLE) and isinstance(b, SINGLE) else np.maximum(a, b)


def least(a: Number, b: Number) -> Number:
    """The smaller."""
    return min(a, b) if isinstance(a, SINGLE) and isinstance(b, SINGLE) else np.minimum(a, b)


class Numbers(NamedTuple):
    """The three, of numbers of one kind."""

    up: Callable[[Number], Number]
    most: Callable[[Number, Number], Number]
    least: Callable[[Number, Number], Number]


EITHER = Numbers(up, most, least)
SINGLES = Numbers(math.ceil, max, min)
