"""Local linear attention: a ridge regression around each query (LLA)."""

from engine.kernels.local_linear_attention import reference, work
from engine.kernels.local_linear_attention.cases import CASES, SIZES
from engine.kernels.operator import Operator

OPERATOR = Operator(
    name="local_linear_attention",
    about="the intercept at q of a ridge regression of v on k under causal softmax weights",
    reference=reference.local_linear_attention,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
    inputs=("q_BHTD", "k_BHTD", "v_BHTE"),
)

__all__ = ["OPERATOR"]
