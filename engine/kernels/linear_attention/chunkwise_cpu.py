"""Gated linear attention chunk by chunk on the CPU: state between chunks, products inside."""

from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.core.errors import BadInput
from engine.kernels.lanes import LANES
from engine.kernels.linear_attention import chunks
from engine.kernels.linear_attention.backward import Form, attend
from engine.kernels.operator import Variant

CHUNK, SUB_CHUNK = 64, 16  # tokens


def _flat(x: Tensor, width: int) -> np.ndarray:
    """Heads as one axis, the last axis padded to `width` with zeros."""
    x = pad(x, (0, width - x.shape[-1])) if x.shape[-1] < width else x
    return x.contiguous().flatten(0, 1).numpy()


def _padded(width: int) -> int:
    return -(-width // LANES) * LANES


def _run(
    compiled: Any, chunk: int, sub: int, a: Tensor, b: Tensor, c: Tensor, g: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    """Run one of the two products on padded heads and cut its results to their widths."""
    lead, rows, columns = state.shape[:2], state.shape[2], state.shape[3]
    deep, wide = _padded(rows), _padded(columns)
    last = pad(state, (0, wide - columns, 0, deep - rows)).contiguous().clone()
    out = torch.empty(*lead, a.shape[2], wide)
    flat = [_flat(x, _padded(x.shape[-1])) for x in (a, b, c, g)]
    compiled(
        chunks.product_address(),
        *flat,
        last.flatten(0, 1).numpy(),
        chunk,
        sub,
        _flat(out, wide),
    )
    return out[..., :columns], last[..., :rows, :columns]


@cache
def form(chunk: int, sub_chunk: int) -> Form:
    """Both products by chunks of `chunk` tokens cut into sub-chunks of `sub_chunk`."""
    if sub_chunk < LANES or sub_chunk % LANES or chunk < sub_chunk or chunk % sub_chunk:
        raise BadInput(
            f"chunk {chunk}, sub-chunk {sub_chunk}: give a sub-chunk that is a multiple of {LANES} "
            "and a chunk that is a multiple of the sub-chunk"
        )
    return Form(
        partial(_run, chunks.keys_gated, chunk, sub_chunk),
        partial(_run, chunks.values_gated, chunk, sub_chunk),
    )


def gated_linear_attention(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
    chunk: int = CHUNK,
    sub_chunk: int = SUB_CHUNK,
) -> tuple[Tensor, Tensor]:
    """As the reference, in float32. Raises BadInput for chunk lengths that do not fit."""
    return attend(form(chunk, sub_chunk), q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK, state_BHKV, scale)


VARIANT = Variant(
    name="chunkwise_cpu",
    about="two levels: state from chunk to chunk, sub-chunks inside; a head a task",
    device="cpu",
    call=gated_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=3,
    gradients=True,
)
