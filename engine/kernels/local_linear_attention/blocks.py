"""Local linear attention on a GPU (Triton), matrix-free: a program a tile. Forward only."""

import torch
import triton
from torch import Tensor
from torch.nn.functional import pad

from engine.kernels.local_linear_attention.conjugate import ITERATIONS, TOLERANCE
from engine.kernels.operator import Arguments, Variant
from engine.kernels.triton_source import kernels

QUERIES, KEYS = 32, 32  # a tile, and a block of what it sees
NARROWEST, WIDEST = 16, 128


def _heads(x: Tensor) -> Tensor:
    """(batch · heads, time, width) in float32, the width padded with zeros."""
    width = max(triton.next_power_of_2(x.shape[-1]), NARROWEST)
    return pad(x.float(), (0, width - x.shape[-1])).contiguous().flatten(0, 1)


def local_linear_attention(
    q_BHTD: Tensor, k_BHTD: Tensor, v_BHTE: Tensor, scale: float, ridge: float
) -> Tensor:
    """As the reference, in float32; not differentiable."""
    q, k, v = (_heads(x.detach()) for x in (q_BHTD, k_BHTD, v_BHTE))
    heads, time, value = v.shape
    o = torch.empty_like(v)
    module = kernels("engine.kernels.local_linear_attention.blocks_triton", not q.is_cuda)
    if heads and time:
        module.attend[(triton.cdiv(time, QUERIES), heads)](
            q, k, v, o, time, scale, ridge, ITERATIONS, TOLERANCE**2,
            KEY=q.shape[-1], VALUE=value, QUERIES=QUERIES, KEYS=KEYS,
            num_warps=8 if max(q.shape[-1], value) > 64 else 4,
        )  # fmt: skip
    return o.view(*v_BHTE.shape[:-1], value)[..., : v_BHTE.shape[-1]]


def _refuses(given: Arguments) -> str:
    widest = max(given["q_BHTD"].shape[-1], given["v_BHTE"].shape[-1])
    return f"takes heads of at most {WIDEST} numbers, not {widest}" if widest > WIDEST else ""


VARIANT = Variant(
    name="blocks",
    about="conjugate gradients over blocks of keys, a tile of queries a program; forward only",
    device="cuda",
    call=local_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    interpreted=True,
    refuses=_refuses,
)
