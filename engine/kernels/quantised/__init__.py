"""Products with weights of few bits: round or read once, `pack` once, multiply often."""

from engine.kernels.operator import Operator
from engine.kernels.quantised import reference, work
from engine.kernels.quantised.cases import CASES, SIZES

OPERATOR = Operator(
    name="quantised_matmul",
    about="x · Wᵀ in float32, the weight in packed codes of 1 to 8 bits with scales by group",
    reference=reference.quantised_matmul,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR"]
