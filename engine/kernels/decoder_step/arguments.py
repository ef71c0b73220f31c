"""What the decoder step takes, grouped: numba passes named tuples of arrays whole.

Shape letters: L layers, C hidden, H query heads, G key/value heads, D head size, W feed-forward
width, V vocabulary, P paths of thought, T new tokens, B sequences, R wanted logits. Widths written
to by products are rounded up to 16 lanes: C', W', V', Q' for (H + 2G)·D. All arrays are flat.
"""

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Shape(NamedTuple):
    """Sizes of the model and the cache page, and the constants of its formulas, and the
    threads that share a step."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    dim: int
    width: int
    vocab: int
    page_size: int
    qk_norm: bool
    eps: np.float32
    scale: np.float32
    softcap: np.float32
    threads: int
    paths: int


class Weights(NamedTuple):
    """`matrices`: int64 [7·L + 1, FIELDS] of `products_cpu`: query, key, value, out, gate, up and
    down of each layer, and the head. Where query, key and value are one, they are the query and the
    others have no panels.
    """

    matrices: Array
    like: Array  # uint32, empty
    norms: Array  # float32 [2·L + 1, C]: before attention, before feed-forward …, the last
    biases: Array  # float32 [L, P + 1, Q'] by path, first of none; zeros where there are none
    head_norms: Array  # float32 [L, 2, D] for queries and keys; empty without them
    windows: Array  # int64 [L], 0 unlimited
    sinks: Array  # float32, empty: no model of the step has any


class Inputs(NamedTuple):
    """One batch: see `engine.models.batch.Batch`; `turn` is [positions, cosines then sines].

    From `attend` on: attention over views, see `engine.models.batch.Views`; unread where it is 0.
    """

    positions: Array  # [T]
    slots: Array  # [T]
    start: Array  # [B + 1]
    context: Array  # [B]
    table: Array  # [B, table_width]
    table_width: int
    first_tasks: Array  # int64 [B + 1] and
    task_heads: Array  # int64 [B]: attention's `Split`
    logits_at: Array  # [R]
    paths: Array  # [T] each token's path of thought, 0 for none
    turn: Array
    caches: Array  # int64 [L, 2] addresses of the layers' key and value pages
    cache_like: Array  # an empty array of the cache's dtype
    cache_size: int  # elements of one layer's pages
    attend: int  # address of the attention over views
    first_pairs: Array  # [B + 1]
    blocks: Array  # [N]
    seen: Array  # [N]
    shifts: Array  # [N]
    block_table: Array  # [K, block_width]
    block_width: int
    sequence: Array  # [T] of each token
    members: int  # key/value heads of a task
    pure_turn: Array  # like `turn`, without magnitude
    places: Array  # int64 [threads, places_size], scratch
    places_size: int
    scratch: Array  # [threads, scratch_size]
    scratch_size: int


class Buffers(NamedTuple):
    """float32, written by the step; `x` comes in holding the embedded tokens."""

    x: Array  # [T, C'] the residual stream
    normed: Array  # [max(T, R), C']
    qkv: Array  # [T, Q']
    mixed: Array  # [T, H·D] what attention gives
    gate: Array  # [T, W']
    up: Array  # [T, W']
    logits: Array  # [R, V']
    work: Array  # [threads, work_size]
    work_size: int
    held: Array  # int32 [threads, held_size]: rows that a thread quantised, empty without integers
    held_size: int
