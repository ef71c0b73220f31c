"""Rotary position embedding of query and key heads."""

from engine.kernels.operator import Operator
from engine.kernels.rotary import reference, work
from engine.kernels.rotary.cases import CASES, SIZES
from engine.kernels.rotary.halves_cpu import rotate

OPERATOR = Operator(
    name="rotary",
    about="dimension i turned with dimension i + D/2 by the token's angle",
    reference=reference.rotate,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR", "rotate"]
