"""Causal attention of new tokens over keys and values kept in pages."""

from engine.kernels.operator import Operator
from engine.kernels.paged_attention import reference, work
from engine.kernels.paged_attention.cases import CASES, SIZES
from engine.kernels.paged_attention.tasks_cpu import paged_attention

OPERATOR = Operator(
    name="paged_attention",
    about="softmax(q · kᵀ · scale) · v for new tokens over keys and values kept in pages",
    reference=reference.paged_attention,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
)

__all__ = ["OPERATOR", "paged_attention"]
