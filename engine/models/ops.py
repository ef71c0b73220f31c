"""The operations models are assembled from: plain torch anywhere, kernels on the processor."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from engine.kernels.norm import rms_norm as rms_norm_kernel
from engine.kernels.paged_attention import paged_attention as paged_attention_kernel
from engine.kernels.rotary import rotate as rotate_kernel
from engine.models.layers import rms_norm
from engine.models.linear import PackedLinear, PlainLinear
from engine.models.paged_attention import paged_attention
from engine.models.rotary import rotate

Linear: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Ops:
    """One way to compute; both ways agree within rounding of the activations' type.

    `wide`: activations are float32 whatever the weights are.
    """

    linear: Callable[[Tensor, Tensor | None], Linear]
    rms_norm: Callable[[Tensor, Tensor, float], Tensor]
    rotate: Callable[[Tensor, Tensor, Tensor, bool], Tensor]
    paged_attention: Callable[..., Tensor]
    wide: bool


def plain_ops() -> Ops:
    """Torch alone: any device, activations in the weights' type."""
    return Ops(PlainLinear, rms_norm, rotate, paged_attention, wide=False)


def kernel_ops() -> Ops:
    """Compiled kernels on the processor: activations in float32, weights float32 or bfloat16."""
    return Ops(PackedLinear, rms_norm_kernel, _rotate, paged_attention_kernel, wide=True)


def _rotate(x_THD: Tensor, cos_T1F: Tensor, sin_T1F: Tensor, interleaved: bool) -> Tensor:
    if interleaved:
        return rotate(x_THD, cos_T1F, sin_T1F, True)
    return rotate_kernel(x_THD, cos_T1F.squeeze(1), sin_T1F.squeeze(1))
