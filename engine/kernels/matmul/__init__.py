"""Products with a linear layer's weight: `pack` once, `matmul` often."""

from engine.kernels.matmul import reference, work
from engine.kernels.matmul.cases import CASES, SIZES
from engine.kernels.matmul.pack import Packed, pack
from engine.kernels.matmul.panels_cpu import matmul
from engine.kernels.operator import Operator

OPERATOR = Operator(
    name="matmul",
    about="x · Wᵀ in float32, the weight in float32 or half precision",
    reference=reference.matmul,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR", "Packed", "matmul", "pack"]
