"""Ops: what models compute with, plain torch anywhere, compiled kernels on the processor, the
operators' picked variants (Triton, libraries) on a GPU.

Shape letters: T tokens, N outputs, K inputs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor, nn

from engine.kernels.integer_matmul.linears import CodedLinears
from engine.kernels.matmul import matmul, pack
from engine.kernels.norm import rms_norm as rms_norm_kernel
from engine.kernels.paged_attention import paged_attention as paged_attention_kernel
from engine.kernels.paged_attention.mixed_batch import OperatorAttention
from engine.kernels.rotary import rotate as rotate_kernel
from engine.models.layers import rms_norm
from engine.models.operator_ops import NONE, OperatorOps
from engine.models.paged_attention import paged_attention
from engine.models.rotary import rotate

Linear: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Ops:
    """One way to compute; all ways agree within rounding of the activations' type.

    `wide`: activations are float32 whatever the weights are. `codes`: makes linear layers of
    quantised weights as they are packed. `attention`: of a GPU, whose plans can be held.
    """

    linear: Callable[[Tensor, Tensor | None], Linear]
    rms_norm: Callable[[Tensor, Tensor, float], Tensor]
    rotate: Callable[[Tensor, Tensor, Tensor, bool], Tensor]
    paged_attention: Callable[..., Tensor]
    swiglu: Callable[[Tensor, Tensor], Tensor]
    wide: bool
    codes: CodedLinears | None = None
    attention: OperatorAttention | None = None


def plain_ops() -> Ops:
    """Torch alone: any device, activations in the weights' type."""
    return Ops(PlainLinear, rms_norm, rotate, paged_attention, _swiglu, wide=False)


def kernel_ops(integers: bool = False) -> Ops:
    """Compiled kernels on the processor: activations in float32, weights float32 or bfloat16;
    `integers`: activations in 8 bits where weights in codes allow."""
    return Ops(
        PackedLinear, rms_norm_kernel, _rotate, paged_attention_kernel, _swiglu, True,
        CodedLinears(integers),
    )  # fmt: skip


def operator_ops(variants: Mapping[str, str] = NONE) -> Ops:
    """The operators' picks for the tensors' device, or the variants forced by operator name."""
    by = OperatorOps(variants)
    return Ops(
        by.linear, by.rms_norm, by.rotate, by.paged_attention, by.swiglu, wide=False,
        attention=by.attention,
    )  # fmt: skip


def ops_for(device: str, compiled: bool, integers: bool = False) -> Ops:
    """What runs a model on a device: `compiled` kernels where the processor has them."""
    if compiled:
        return kernel_ops(integers)
    return operator_ops() if device.startswith("cuda") else plain_ops()


def _swiglu(gate_TC: Tensor, up_TC: Tensor) -> Tensor:
    return nn.functional.silu(gate_TC) * up_TC


def _rotate(x_THD: Tensor, cos_T1F: Tensor, sin_T1F: Tensor, interleaved: bool) -> Tensor:
    if interleaved:
        return rotate(x_THD, cos_T1F, sin_T1F, True)
    return rotate_kernel(x_THD, cos_T1F.squeeze(1), sin_T1F.squeeze(1))


class PlainLinear:
    """Any device; activations in the weight's type."""

    __slots__ = ("bias_N", "weight_NK")

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None) -> None:
        self.weight_NK = weight_NK
        self.bias_N = bias_N

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN."""
        return nn.functional.linear(x_TK, self.weight_NK, self.bias_N)


class PackedLinear:
    """The processor; activations in float32, a row's result the same bits in any batch."""

    __slots__ = ("bias_N", "weight")

    def __init__(self, weight_NK: Tensor, bias_N: Tensor | None) -> None:
        self.weight = pack(weight_NK)
        self.bias_N = None if bias_N is None else bias_N.float()

    def __call__(self, x_TK: Tensor) -> Tensor:
        """y_TN in float32."""
        y_TN = matmul(x_TK, self.weight)
        return y_TN if self.bias_N is None else y_TN.add_(self.bias_N)
