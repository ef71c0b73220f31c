"""The gated unit of Llama-like feed-forwards."""

from engine.kernels.operator import Operator
from engine.kernels.swiglu import reference, work
from engine.kernels.swiglu.cases import CASES, SIZES
from engine.kernels.swiglu.rows_cpu import swiglu

OPERATOR = Operator(
    name="swiglu",
    about="gate · sigmoid(gate) · up",
    reference=reference.swiglu,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR", "swiglu"]
