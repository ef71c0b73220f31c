"""A number format of few bits: what each code of a quantised weight stands for.

Integers of 1 to 8 bits in two's complement (`int4`), floats with a sign, X exponent and Y mantissa
bits (`e4m3`; OCP 8-bit Floating Point Specification 1.0 and Microscaling Formats 1.0 for those that
they name), and `ternary`, two bits for -1, 0 and 1.
"""

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from engine.core.errors import BadInput

MOST_BITS = 8
HALF_BIAS = 15  # of float16, which floats of few bits are read through
KNOWN = "int1 to int8, ternary, or a float such as e4m3, e5m2, e2m1 (at most 8 bits)"


@dataclass(frozen=True, slots=True)
class Format:
    """`exponent` and `mantissa`: bits of a float's parts; both 0 for an integer."""

    name: str
    bits: int
    exponent: int = 0
    mantissa: int = 0

    @property
    def is_float(self) -> bool:
        return self.exponent > 0

    @property
    def factor(self) -> float:
        """A power of two: the value of a code over that of the float16 its bits are put into."""
        if not self.is_float:
            return 1.0
        return float(2 ** (HALF_BIAS - (2 ** (self.exponent - 1) - 1)))

    @property
    def values(self) -> np.ndarray:
        """float32 [2^bits], what each code stands for; NaN for a code that is no number."""
        return _values(self)

    @property
    def largest(self) -> float:
        """The largest magnitude that both signs have."""
        return _largest(self)


@cache
def _largest(of: Format) -> float:
    finite = of.values[np.isfinite(of.values)]
    return float(min(finite.max(), -finite.min()))


@cache
def _values(of: Format) -> np.ndarray:
    codes = np.arange(2**of.bits)
    if of.name == "ternary":
        return np.array([0, 1, np.nan, -1], np.float32)
    if not of.is_float:
        half = 2 ** (of.bits - 1)
        return ((codes + half) % (2 * half) - half).astype(np.float32)
    return _float_values(of, codes)


def _float_values(of: Format, codes: np.ndarray) -> np.ndarray:
    steps, bias = 2**of.mantissa, 2 ** (of.exponent - 1) - 1
    field, rest = codes // steps % 2**of.exponent, codes % steps
    normal = (1 + rest / steps) * 2.0 ** (field - bias)
    found = np.where(field == 0, rest / steps * 2.0 ** (1 - bias), normal)
    found *= np.where(codes >= 2 ** (of.bits - 1), -1.0, 1.0)
    if of.exponent == 5:  # as IEEE 754 has it: infinities and NaN at the largest exponent
        found[field == 31] = np.nan
    if of.name == "e4m3":  # no infinities, one NaN of each sign
        found[[0x7F, 0xFF]] = np.nan
    return found.astype(np.float32)


def format_of(name: str) -> Format:
    """The format of that name. Raises BadInput."""
    if name == "ternary":
        return Format(name, 2)
    whole = re.fullmatch(r"int([1-8])", name)
    if whole:
        return Format(name, int(whole[1]))
    parts = re.fullmatch(r"e([2-5])m([0-5])", name)
    if parts and 1 + int(parts[1]) + int(parts[2]) <= MOST_BITS:
        exponent, mantissa = int(parts[1]), int(parts[2])
        return Format(name, 1 + exponent + mantissa, exponent, mantissa)
    raise BadInput(f"number format {name[:40]!r}: not one that is known; give {KNOWN}")
