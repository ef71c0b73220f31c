"""A dense model's weights laid out for the fused step, read from their mapping a layer at a time.

In comes a mapping by Hugging Face name, each tensor made when asked for (a checkpoint, or random);
out come the embedding table and `Weights`, and of what was read nothing is kept.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from engine.kernels.decoder_step import Weights
from engine.kernels.lanes import LANES
from engine.kernels.matmul.pack import aligned, pack, packed_length
from engine.models.config import ModelConfig
from engine.models.parameters import layer_parameters, outer_parameters, roles

VECTORS = ("attention_norm", "mlp_norm", "query_norm", "key_norm")
BIASES = ("query.bias", "key.bias", "value.bias")
PATHS = ("path_key", "path_value")


def read(config: ModelConfig, weights: Mapping[str, Tensor]) -> tuple[np.ndarray, Weights]:
    """The embedding table [V, C], float32 or bfloat16 as its bits, and everything else packed.

    Beside what it gives it holds one layer's tensors at a time, or the output head.
    """
    outer = {p.roles[0][0]: p for p in outer_parameters(config)}
    embedding_VC = weights[outer["embedding"].name].detach()
    places, data = _room(config, half=embedding_VC.dtype == torch.bfloat16)
    # The widest matrix first: the array's pages are not there before something is written to them.
    head_VC = weights[outer["head"].name] if "head" in outer else embedding_VC
    pack(head_VC, data[places[-2] :])
    del head_VC
    vectors = [_layer(config, layer, weights, places, data) for layer in range(config.layers)]
    half = data.dtype == np.uint32
    inputs = config.hidden, config.heads * config.head_dim, config.hidden, config.width
    norms = [w[name] for w in vectors for name in VECTORS[:2]]
    return _rows(embedding_VC), Weights(
        data=data,
        places=places,
        panels=np.array([packed_length(LANES, k, half) for k in inputs], np.int64),
        norms=_join([*norms, weights[outer["norm"].name]]),
        biases=_biases(config, vectors),
        head_norms=_join([w[name] for w in vectors for name in VECTORS[2:] if name in w]),
        windows=np.array(config.windows, np.int64),
    )


def _room(config: ModelConfig, half: bool) -> tuple[np.ndarray, np.ndarray]:
    """Where each matrix begins, in the order a step reads them, and zeros for all of them."""
    C, W, queries = config.hidden, config.width, config.heads * config.head_dim
    qkv = queries + 2 * config.kv_heads * config.head_dim
    up = 2 * packed_length(W, C, half)
    layer = [packed_length(qkv, C, half), packed_length(C, queries, half), up]
    layer.append(packed_length(C, W, half))
    sizes = layer * config.layers + [packed_length(config.vocab, C, half)]
    places = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return places, aligned(int(places[-1]), np.uint32 if half else np.float32)


def _layer(
    config: ModelConfig,
    layer: int,
    weights: Mapping[str, Tensor],
    places: np.ndarray,
    data: np.ndarray,
) -> dict[str, Tensor]:
    """Pack one layer's matrices into `data`; its vectors by role."""
    w = roles(layer_parameters(config, layer), weights)
    qkv = torch.cat([w["query"], w["key"], w["value"]])
    matrices = [qkv], [w["out"]], [w["gate"], w["up"]], [w["down"]]
    for first, parts in zip(places[4 * layer :].tolist(), matrices, strict=False):
        place = first
        for part in parts:
            size = packed_length(part.shape[0], part.shape[1], data.dtype == np.uint32)
            pack(part, data[place : place + size])
            place += size
    return {name: w[name] for name in (*VECTORS, *BIASES, *PATHS) if name in w}


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
