"""Softmax attention of whole sequences, for prefill and training."""

from engine.kernels.attention import reference, work
from engine.kernels.attention.cases import CASES, SIZES
from engine.kernels.operator import Operator

OPERATOR = Operator(
    name="attention",
    about="softmax(q · kᵀ · scale) · v and its log-sum-exp, over sequences of any lengths",
    reference=reference.attention,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    inputs=("q_THD", "k_SGD", "v_SGE"),
    package=__name__,
)

__all__ = ["OPERATOR"]
