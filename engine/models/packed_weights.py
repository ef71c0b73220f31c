"""A dense model's weights laid out for the fused step, read from their mapping a layer at a time.

In comes a mapping by Hugging Face name, each tensor made when asked for (a checkpoint, or random);
out come the embedding table and `Weights`, and of what was read nothing is kept.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from engine.kernels.decoder_step import Weights
from engine.kernels.decoder_step.products_cpu import FIELDS, NOTHING, Matrix, row
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import pack
from engine.kernels.paged_attention.tasks_cpu import NO_SINKS
from engine.kernels.quantised.pack import pack as pack_codes
from engine.kernels.quantised.weight import Quantised
from engine.models.config import ModelConfig
from engine.models.parameters import layer_parameters, outer_parameters, roles
from engine.models.tensors.parameter import Parameter

VECTORS = ("attention_norm", "mlp_norm", "query_norm", "key_norm")
BIASES = ("query.bias", "key.bias", "value.bias")
PATHS = ("path_key", "path_value")
MATRICES = ("query", "key", "value", "out", "gate", "up", "down")

Codes = Callable[[str], Quantised | None]


class PackedModel(NamedTuple):
    """`embedding_VC`: float32, or bfloat16 bits; `matrices` hold what `weights` points at."""

    embedding_VC: np.ndarray
    weights: Weights
    matrices: list[Matrix]


def takes_codes(config: ModelConfig) -> bool:
    """Whether the step takes this model's matrices in codes: whole blocks, and whole panels where
    outputs of several matrices lie side by side."""
    queries, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
    blocks = all(inputs % 32 == 0 for inputs in (config.hidden, queries, config.width))
    return blocks and queries % LANES == 0 and keys % LANES == 0


def read(
    config: ModelConfig,
    weights: Mapping[str, Tensor],
    codes: Codes | None,
    integers: bool = False,
) -> PackedModel:
    """Everything packed for the step. Beside what it gives it holds one layer's tensors at a time,
    or the output head. `codes`: a tensor by name as codes, None where it is plain numbers.
    `integers`: activations are quantised for the matrices whose format allows."""
    outer = {p.roles[0][0]: p for p in outer_parameters(config)}
    table = outer["embedding"].name
    head = (outer["head"] if "head" in outer else outer["embedding"]).name
    # The widest matrix first, while little else is held.
    last = _matrix([_codes_of(codes, head) or weights[head]])
    layers = [_layer(config, layer, weights, codes) for layer in range(config.layers)]
    matrices = [matrix for packed, _ in layers for matrix in packed] + [last]
    vectors = [found for _, found in layers]
    norms = [w[name] for w in vectors for name in VECTORS[:2]]
    rows = [row(m, integers) if m is not None else [0] * FIELDS for m in matrices]
    packed = Weights(
        matrices=np.array(rows, np.int64).reshape(-1),
        like=NOTHING,
        norms=_join([*norms, weights[outer["norm"].name]]),
        biases=_biases(config, vectors),
        head_norms=_join([w[name] for w in vectors for name in VECTORS[2:] if name in w]),
        windows=np.array(config.windows, np.int64),
        sinks=NO_SINKS,
    )
    held = [matrix for matrix in matrices if matrix is not None]
    return PackedModel(_rows(weights[table].detach()), packed, held)


def _codes_of(codes: Codes | None, name: str) -> Quantised | None:
    return None if codes is None else codes(name)


def _matrix(parts: Sequence[Tensor | Quantised]) -> Matrix:
    """Parts with their outputs one after the other, as one matrix."""
    [first, *more] = parts
    if isinstance(first, Quantised):
        assert not more
        return pack_codes(first)
    tensors = [part for part in parts if isinstance(part, Tensor)]
    return pack(torch.cat(tensors) if more else first)


def _layer(
    config: ModelConfig, layer: int, weights: Mapping[str, Tensor], codes: Codes | None
) -> tuple[list[Matrix | None], dict[str, Tensor]]:
    """One layer's matrices in the step's order, and its vectors by role."""
    plain: list[Parameter] = []
    coded: dict[str, Quantised] = {}
    for parameter in layer_parameters(config, layer):
        found = _codes_of(codes, parameter.name) if len(parameter.shape) == 2 else None
        if found is None:
            plain.append(parameter)
        else:
            coded |= _parts(parameter, found)
    w = roles(plain, weights)
    each: list[Tensor | Quantised] = [coded[n] if n in coded else w[n] for n in MATRICES]
    packed: list[Matrix | None]
    if any(isinstance(part, Quantised) for part in each[:3]):
        packed = [_matrix([part]) for part in each]
    else:
        packed = [_matrix(each[:3]), None, None, *(_matrix([part]) for part in each[3:])]
    return packed, {name: w[name] for name in (*VECTORS, *BIASES, *PATHS) if name in w}


def _parts(parameter: Parameter, whole: Quantised) -> dict[str, Quantised]:
    """The codes of each role that shares a tensor's rows."""
    found, start = {}, 0
    for role, count in parameter.roles:
        found[role] = whole.rows(slice(start, start + count))
        start += count
    return found


def _rows(embedding_VC: Tensor) -> np.ndarray:
    """The table as numpy reads it: float32, or bfloat16 as its bits."""
    if embedding_VC.dtype == torch.bfloat16:
        return embedding_VC.contiguous().view(torch.int16).numpy().view(np.uint16)
    return embedding_VC.float().numpy()


def _join(vectors: list[Tensor]) -> np.ndarray:
    flat_vectors = [vector.detach().float().reshape(-1).numpy() for vector in vectors]
    return np.concatenate([np.zeros(0, np.float32), *flat_vectors])


def _biases(config: ModelConfig, vectors: list[dict[str, Tensor]]) -> np.ndarray:
    """By layer and path: the projections' biases, and the path's embedding on keys and values."""
    queries = config.heads * config.head_dim
    width = queries + 2 * config.kv_heads * config.head_dim
    found = np.zeros((config.layers, config.paths + 1, -(-width // LANES) * LANES), np.float32)
    for rows, w in zip(found, vectors, strict=True):
        if config.qkv_bias:
            rows[:, :width] = _join([w[name] for name in BIASES])
        if config.paths:
            paths = torch.cat([w[name].detach().float() for name in PATHS], dim=1)
            rows[1:, queries:width] += paths.numpy()
    return found.reshape(-1)


def embed(table_VC: np.ndarray, tokens_T: np.ndarray, x_TC: np.ndarray) -> None:
    """Rows of an embedding as `read` gives it into x, in float32."""
    rows_TC = table_VC[tokens_T]
    if rows_TC.dtype == np.uint16:
        rows_TC = (rows_TC.astype(np.uint32) << 16).view(np.float32)
    x_TC[:] = rows_TC
