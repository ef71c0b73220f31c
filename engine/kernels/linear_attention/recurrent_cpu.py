"""The recurrent form of gated linear attention on the CPU (numba): a token after another."""

from typing import Any

import numpy as np
import torch
from numba import prange
from torch import Tensor

from engine.kernels.compiled import inner, kernel
from engine.kernels.linear_attention.backward import Form, attend
from engine.kernels.operator import Variant


@inner
def _keys_gated_head(q, k, v, gate, state, o):
    for t in range(q.shape[0]):
        out = o[t]
        out[:] = 0.0
        for d in range(q.shape[1]):
            kept, key, query, row = gate[t, d], k[t, d], q[t, d], state[d]
            for e in range(v.shape[1]):
                row[e] = row[e] * kept + key * v[t, e]
                out[e] += query * row[e]


@inner
def _values_gated_head(x, w, z, gate, state, y):
    for t in range(x.shape[0]):
        out = y[t]
        out[:] = 0.0
        for e in range(x.shape[1]):
            seen, sent, row = x[t, e], w[t, e], state[e]
            for d in range(z.shape[1]):
                kept = row[d] * gate[t, d]
                out[d] += seen * kept
                row[d] = kept + sent * z[t, d]


@kernel
def _keys_gated(q, k, v, gate, state, o):
    for head in prange(q.shape[0]):
        _keys_gated_head(q[head], k[head], v[head], gate[head], state[head], o[head])


@kernel
def _values_gated(x, w, z, gate, state, y):
    for head in prange(x.shape[0]):
        _values_gated_head(x[head], w[head], z[head], gate[head], state[head], y[head])


def _flat(x: Tensor) -> np.ndarray:
    return x.contiguous().flatten(0, 1).numpy()


def _run(
    compiled: Any, a: Tensor, b: Tensor, c: Tensor, g: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    last = state.contiguous().clone()
    out = torch.empty(*a.shape[:3], state.shape[-1])
    compiled(*map(_flat, (a, b, c, g.exp())), _flat(last), _flat(out))
    return out, last


def _keys(*tensors: Tensor) -> tuple[Tensor, Tensor]:
    return _run(_keys_gated, *tensors)


def _values(*tensors: Tensor) -> tuple[Tensor, Tensor]:
    return _run(_values_gated, *tensors)


FORM = Form(_keys, _values)


def gated_linear_attention(
    q_BHTK: Tensor,
    k_BHTK: Tensor,
    v_BHTV: Tensor,
    log_gate_BHTK: Tensor,
    state_BHKV: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """As the reference, in float32."""
    return attend(FORM, q_BHTK, k_BHTK, v_BHTV, log_gate_BHTK, state_BHKV, scale)


VARIANT = Variant(
    name="recurrent_cpu",
    about="a token after another, the state in cache; a head a task",
    device="cpu",
    call=gated_linear_attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    gradients=True,
)
