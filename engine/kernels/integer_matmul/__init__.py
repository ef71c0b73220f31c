"""Integer products: weights of few bits, activations quantised as they come (W8A8, W4A8)."""

from engine.kernels.integer_matmul import reference
from engine.kernels.integer_matmul.cases import CASES, SIZES
from engine.kernels.operator import Operator
from engine.kernels.quantised.work import work

OPERATOR = Operator(
    name="integer_matmul",
    about="x · Wᵀ, x quantised to 8 bits by row and group, the weight in codes of 2, 4 or 8 bits",
    reference=reference.integer_matmul,
    work=work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR"]
