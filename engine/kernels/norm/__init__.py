"""RMS norm over the last axis."""

from engine.kernels.norm import reference, work
from engine.kernels.norm.cases import CASES, SIZES
from engine.kernels.norm.rows_cpu import rms_norm
from engine.kernels.operator import Operator

OPERATOR = Operator(
    name="norm",
    about="x / √(mean(x²) + eps) · weight, over the last axis",
    reference=reference.rms_norm,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR", "rms_norm"]
