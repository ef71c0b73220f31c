"""The operations of a model through the operators' own pick: what a GPU runs.

Activations stay in the weights' type, as they do in plain torch; each operator computes in float32
inside. `variants` forces variants by operator name, which is how these run without a GPU.
"""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from torch import Tensor

from engine.kernels.attention.gradients import Switches
from engine.kernels.matmul import OPERATOR as MATMUL
from engine.kernels.norm import OPERATOR as NORM
from engine.kernels.paged_attention.mixed_batch import OperatorAttention
from engine.kernels.rotary import OPERATOR as ROTARY
from engine.kernels.swiglu import OPERATOR as SWIGLU
from engine.models.paged_attention import paged_attention
from engine.models.rotary import rotate as rotate_interleaved

NONE: Mapping[str, str] = MappingProxyType({})


class OperatorLinear:
    """A projection by the matmul operator; activations in the type they come in."""

    __slots__ = ("bias_N", "variant", "weight_NK")

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None, variant: str) -> None:
        self.weight_NK = weight_NK
        self.bias_N = bias_N
        self.variant = variant

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN."""
        y_TN = MATMUL(variant=self.variant, x_MK=x_TK, weight_NK=self.weight_NK)
        if self.bias_N is not None:
            y_TN = y_TN + self.bias_N
        return y_TN.to(x_TK.dtype)


class OperatorOps:
    """The operations, each by the variant picked for its arguments or forced by name."""

    def __init__(self, variants: Mapping[str, str] = NONE) -> None:
        self.variants = variants
        self.attention = OperatorAttention(variants)

    def linear(self, weight_NK: Tensor, bias_N: Tensor | None) -> OperatorLinear:
        """A projection with that weight."""
        return OperatorLinear(weight_NK, bias_N, self.variants.get("matmul", ""))

    def rms_norm(self, x_TC: Tensor, weight_C: Tensor, eps: float) -> Tensor:
        """x / rms(x) · weight over the last axis, any leading axes."""
        variant = self.variants.get("norm", "")
        return NORM(variant=variant, x_TC=x_TC, weight_C=weight_C, eps=eps).to(x_TC.dtype)

    def rotate(self, x_THD: Tensor, cos_T1F: Tensor, sin_T1F: Tensor, interleaved: bool) -> Tensor:
        """Every head turned by its token's angle."""
        if interleaved:
            return rotate_interleaved(x_THD, cos_T1F, sin_T1F, True)
        turn = {"cos_TF": cos_T1F.squeeze(1), "sin_TF": sin_T1F.squeeze(1)}
        variant = self.variants.get("rotary", "")
        return ROTARY(variant=variant, x_THD=x_THD, **turn).to(x_THD.dtype)

    def swiglu(self, gate_TC: Tensor, up_TC: Tensor) -> Tensor:
        """gate · sigmoid(gate) · up."""
        variant = self.variants.get("swiglu", "")
        return SWIGLU(variant=variant, gate_TC=gate_TC, up_TC=up_TC).to(gate_TC.dtype)

    def paged_attention(
        self,
        q_THD: Tensor,
        k_PSGD: Tensor,
        v_PSGE: Tensor,
        block_table_BP: np.ndarray,
        query_start_B1: np.ndarray,
        context_B: np.ndarray,
        *,
        scale: float,
        window: int = 0,
        softcap: float = 0.0,
        sinks_H: Tensor | None = None,
    ) -> Tensor:
        """o_THE by a GPU's kernels, but for sinks and what those do not take: in plain torch."""
        rows = (block_table_BP, query_start_B1, context_B)
        if sinks_H is None:
            switches = Switches(scale, True, window, softcap)
            found = self.attention(q_THD, k_PSGD, v_PSGE, rows, switches)
            if found is not None:
                return found
        return paged_attention(
            q_THD, k_PSGD, v_PSGE, *rows, scale=scale, window=window, softcap=softcap,
            sinks_H=sinks_H,
        )  # fmt: skip
