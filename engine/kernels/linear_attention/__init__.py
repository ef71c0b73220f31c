"""Gated linear attention: attention with a decaying matrix for a memory (GLA)."""

from engine.kernels.linear_attention import reference, work
from engine.kernels.linear_attention.cases import CASES, SIZES
from engine.kernels.operator import Operator

OPERATOR = Operator(
    name="linear_attention",
    about="S = exp(gate)·S + k vᵀ; o = scale · qᵀ S, causally, with first and last state",
    reference=reference.gated_linear_attention,
    work=work.work,
    cases=CASES,
    sizes=SIZES,
    package=__name__,
    inputs=("q_BHTK", "k_BHTK", "v_BHTV", "log_gate_BHTK", "state_BHKV"),
)

__all__ = ["OPERATOR"]
