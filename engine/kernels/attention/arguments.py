"""What attention is given: checked, and laid flat for the compiled kernels.

Shape letters: T query tokens, S key tokens, H query heads, G key/value heads, D key size,
E value size, B sequences.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from engine.core.errors import BadInput
from engine.kernels.lanes import LOG2_E

Array = np.ndarray
KEYS = 64  # keys between two looks at the maximum


class Shape(NamedTuple):
    """Sizes and the switches of one call. `scale` and `cap` are in units of log 2."""

    heads: int
    kv_heads: int
    dim: int
    value_dim: int
    scale: np.float32
    cap: np.float32  # scores stay within ±cap; 0: as they are
    causal: bool
    window: int  # keys a query looks back at, itself among them; 0: all
    keys: int  # keys between two looks at the maximum, forward
    rescale: bool  # false only to show what goes wrong without it
    together: int = 1  # blocks of queries of a task, forward


class Given(NamedTuple):
    """Flat float32 tensors, and where each sequence's tokens begin (int64, B + 1)."""

    q: Array  # [T, H, D]
    k: Array  # [S, G, D]
    v: Array  # [S, G, E]
    query_start: Array
    key_start: Array


def flat(tensor: Tensor) -> Array:
    """A tensor's numbers as flat float32; a copy only where they are not that already."""
    return np.ascontiguousarray(tensor.detach().float().numpy()).reshape(-1)


def starts(start_B1: Tensor) -> Array:
    """Cumulative starts as int64."""
    return np.ascontiguousarray(start_B1.numpy(), np.int64)


def shaped(
    q_THD: Tensor, k_SGD: Tensor, v_SGE: Tensor, scale: float, causal: bool, window: int,
    softcap: float, keys: int = KEYS, rescale: bool = True, together: int = 1,
) -> Shape:  # fmt: skip
    """The Shape of a call."""
    (_, H, D), (_, G, E) = q_THD.shape, v_SGE.shape
    in_log2, cap = np.float32(scale * LOG2_E), np.float32(softcap * LOG2_E)
    return Shape(H, G, D, E, in_log2, cap, causal, window, keys, rescale, together)


def given(
    q_THD: Tensor, k_SGD: Tensor, v_SGE: Tensor, query_start_B1: Tensor, key_start_B1: Tensor
) -> Given:
    """The Given of a call."""
    return Given(
        flat(q_THD), flat(k_SGD), flat(v_SGE), starts(query_start_B1), starts(key_start_B1)
    )


def check(arguments: Mapping[str, Any]) -> None:
    """Raise BadInput where shapes do not fit each other."""
    (T, H, D), (S, G, K) = arguments["q_THD"].shape, arguments["k_SGD"].shape
    if D != K:
        raise BadInput(f"attention: queries of size {D} meet keys of size {K}; give equal sizes")
    if arguments["v_SGE"].shape[:2] != (S, G):
        raise BadInput(
            f"attention: {S} keys of {G} heads, but values of shape "
            f"{tuple(arguments['v_SGE'].shape)}; give one value a key"
        )
    if H % G:
        raise BadInput(
            f"attention: {H} query heads over {G} key heads; give a multiple of the key heads"
        )
    for name, tokens in (("query_start_B1", T), ("key_start_B1", S)):
        start = arguments[name]
        if start.is_cpu and len(start) and int(start[-1]) != tokens:
            raise BadInput(f"attention: {name} ends at {int(start[-1])}, of {tokens} tokens")
    if len(arguments["query_start_B1"]) != len(arguments["key_start_B1"]):
        raise BadInput("attention: query_start_B1 and key_start_B1 differ in length")
