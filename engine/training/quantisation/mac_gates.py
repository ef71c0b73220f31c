"""Gates of a multiply-accumulate unit, counted from its parts: integers beside floats of few bits.

A count of two-input gates of textbook parts (array multiplier, ripple adder, barrel shifter,
leading-zero counter), not a synthesis: wires, registers and timing are left out.
"""

from math import ceil, log2

from engine.kernels.quantised.formats import Format

FULL_ADDER = 5
MULTIPLEXER = 3
AND = 1
INTEGER_SUM = 32  # bits of the accumulator of integers
FLOAT_SUM = (8, 24)  # exponent and significand bits of a float32 accumulator
HALF_SUM = (5, 11)


def adder(bits: int) -> int:
    """A ripple-carry adder."""
    return FULL_ADDER * bits


def multiplier(a: int, b: int) -> int:
    """An array multiplier of a × b bits."""
    return AND * a * b + FULL_ADDER * max(a - 1, 0) * b


def shifter(bits: int, distance: int, multiplexer: int = MULTIPLEXER) -> int:
    """A barrel shifter over up to `distance` places."""
    return multiplexer * bits * ceil(log2(distance + 1))


def leading_zeros(bits: int) -> int:
    """A leading-zero counter."""
    return 2 * bits


def integer_mac(of: Format, bits: int = INTEGER_SUM) -> int:
    """Product of two codes into an integer sum."""
    return multiplier(of.bits, of.bits) + adder(bits)


def float_mac(
    of: Format, sum_bits: tuple[int, int], shifted: bool = True, multiplexer: int = MULTIPLEXER
) -> int:
    """Product of two codes into a float sum: significands multiplied, exponents added, the smaller
    shifted to the larger, added, shifted back and rounded (not `shifted`: added as they are)."""
    exponent, significand = sum_bits
    product = multiplier(of.mantissa + 1, of.mantissa + 1) + adder(of.exponent + 1)
    if not shifted:
        return product + adder(significand + 3)
    moved = shifter(significand + 3, significand + 3, multiplexer)
    align, normalise = 2 * adder(exponent) + moved, leading_zeros(significand + 3) + moved
    return product + align + adder(significand + 3) + normalise + adder(significand + exponent)


def fixed_mac(of: Format, shifted: bool = True, multiplexer: int = MULTIPLEXER) -> int:
    """Product of two codes into a fixed-point sum wide enough for all of them: exact, no rounding;
    the product is shifted to its place (not `shifted`: added as it is)."""
    span = 2 * (2**of.exponent - 2) + 2 * (of.mantissa + 1)
    product = multiplier(of.mantissa + 1, of.mantissa + 1) + adder(of.exponent + 1)
    if not shifted:
        return product + adder(INTEGER_SUM)
    wide = span + INTEGER_SUM - 16  # as much room above a product as the integer sum has
    return product + shifter(span, span, multiplexer) + adder(wide)


def dearer(
    of: Format, integer: Format, shifted: bool = True, multiplexer: int = MULTIPLEXER
) -> dict[str, float]:
    """By accumulator: gates of the float's unit over the integer's, less one."""
    base = integer_mac(integer)
    found = {
        "fixed-point sum": fixed_mac(of, shifted, multiplexer),
        "float16 sum": float_mac(of, HALF_SUM, shifted, multiplexer),
        "float32 sum": float_mac(of, FLOAT_SUM, shifted, multiplexer),
    }
    return {name: gates / base - 1 for name, gates in found.items()}
