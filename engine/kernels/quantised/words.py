"""Product with packed codes on a GPU (Triton): one program a tile of outputs, codes in registers.

It reads what the processor's kernel reads, words by panels of 16 outputs; each group's scale is put
on the numbers before they are multiplied. Numbers are multiplied in float32.
"""

import torch
import triton
from torch import Tensor

from engine.kernels.operator import Variant
from engine.kernels.quantised.pack import TOGETHER, Packed, pack
from engine.kernels.quantised.weight import Quantised
from engine.kernels.triton_source import kernels

BLOCK_M, BLOCK_N = 16, 16 * TOGETHER


def quantised_matmul(x_MK: Tensor, weight: Quantised | Packed) -> Tensor:
    """y_MN = x · Wᵀ in float32 on x's device. A weight not packed is packed first."""
    packed = weight if isinstance(weight, Packed) else pack(weight)
    x, on = x_MK.contiguous(), x_MK.device
    rows, inputs = x.shape
    y = torch.empty(rows, packed.outputs, dtype=torch.float32, device=on)
    if not y.numel():
        return y
    panels, blocks = packed.blocks_PB.shape
    words = torch.from_numpy(packed.blocks_PB.view("<i4").reshape(panels, -1)).to(on)
    scales = torch.from_numpy(packed.scales_PGL).to(on)
    zeros = scales if packed.zeros_PGL is None else torch.from_numpy(packed.zeros_PGL).to(on)
    of, zero = packed.format, packed.zeros_PGL is not None
    grid = (triton.cdiv(rows, BLOCK_M), panels // TOGETHER)
    kernels("engine.kernels.quantised.words_triton", not x.is_cuda).quantised_matmul[grid](
        x, words, scales, zeros, y, rows, packed.outputs, inputs, x.stride(0), words.shape[1],
        scales.shape[1], packed.group, ZERO=zero, BITS=of.bits, WORDS=packed.words,
        EXPONENT=of.exponent, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    return y


VARIANT = Variant(
    name="words",
    about="a program a tile; codes of any width become float32 in registers",
    device="cuda",
    call=quantised_matmul,
    dtypes=("float32", "bfloat16", "float16"),
    interpreted=True,
)
