"""Tiled attention on a GPU (Triton): which tiles, and the launches of forward and backward.

Float32 is multiplied in full, not in the tensor cores' short form.
Shape letters: T query tokens, S key tokens, H query heads, G key/value heads, D key size,
E value size, B sequences.
"""

from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from engine.kernels.attention.arguments import shaped
from engine.kernels.attention.gradients import Algorithm, Saved, Switches, Tensors
from engine.kernels.attention.work import tiled_work
from engine.kernels.lanes import LOG2_E
from engine.kernels.operator import Arguments, Variant
from engine.kernels.triton_source import kernels

PACKAGE = "engine.kernels.attention"
WIDEST = 256  # numbers of a head that a program's tiles can hold


class Tile(NamedTuple):
    """Queries and keys of a tile, and how the compiler is to run it."""

    queries: int
    keys: int
    warps: int
    stages: int


def forward_tile(size: int, number: int) -> Tile:
    """The tile for heads of `size` in `number`-byte numbers.

    Accumulators fit the registers of eight warps, keys and values in flight fit 163 KiB of shared
    memory (A100); float32 takes half as much of each.
    """
    if number == 4:
        return Tile(64, 32, 4, 2)
    if size <= 64:
        return Tile(128, 128, 4 if size <= 32 else 8, 3)
    return Tile(128, 64, 8, 3) if size <= 128 else Tile(64, 64, 8, 2)


def backward_tile(size: int, number: int) -> Tile:
    """As `forward_tile`; backward holds twice as much."""
    if number == 4 or size > 128:
        return Tile(32, 32, 4, 1)
    return Tile(64, 64, 4, 2) if size <= 64 else Tile(64, 64, 8, 2)


def _constants(tensors: Tensors, switches: Switches, tile: Tile) -> dict[str, Any]:
    D, E = tensors.q_THD.shape[-1], tensors.v_SGE.shape[-1]
    on_gpu = tensors.q_THD.is_cuda
    return {
        "D": D,
        "E": E,
        "CAUSAL": switches.causal,
        "WINDOWED": switches.window > 0,
        "CAPPED": switches.softcap > 0,
        # Float32 means float32: the tensor cores' short form would lose half the digits.
        "PRECISION": "ieee" if tensors.q_THD.dtype == torch.float32 else "tf32",
        "BLOCK_M": tile.queries,
        "BLOCK_N": tile.keys,
        "BLOCK_D": max(16, triton.next_power_of_2(D)),
        "BLOCK_E": max(16, triton.next_power_of_2(E)),
        "INTERPRET": not on_gpu,
        **({"num_warps": tile.warps, "num_stages": tile.stages} if on_gpu else {}),
    }


def _longest(start_B1: Tensor, tokens: int) -> int:
    """The longest sequence; one sequence needs no question to the GPU."""
    return tokens if len(start_B1) == 2 else int(start_B1.diff().max())


def _contiguous(tensors: Tensors) -> Tensors:
    return Tensors(*(tensor.contiguous() for tensor in tensors))


def forward(
    tensors: Tensors, switches: Switches, tile: Tile | None = None, longest: int = 0
) -> tuple[Tensor, Tensor]:
    """o_THE in q's dtype, lse_TH in float32.

    `tile`: another than the chosen one; `longest`: the longest sequence of queries, which is asked
    of the GPU where it is not given.
    """
    q, k, v, query_start, key_start = _contiguous(tensors)
    shape = shaped(q, k, v, *switches)
    out = torch.empty(*q.shape[:2], shape.value_dim, dtype=q.dtype, device=q.device)
    lse = torch.empty(q.shape[:2], dtype=torch.float32, device=q.device)
    tile = tile or forward_tile(max(shape.dim, shape.value_dim), q.element_size())
    module = kernels(f"{PACKAGE}.tiles_triton", not q.is_cuda)
    if q.numel():
        blocks = triton.cdiv(longest or _longest(query_start, len(q)), tile.queries)
        module.forward[blocks, shape.heads, len(query_start) - 1](
            q, k, v, out, lse, query_start, key_start, shape.heads, shape.kv_heads,
            float(shape.scale), float(shape.cap), switches.window,
            **_constants(tensors, switches, tile),
        )  # fmt: skip
    return out, lse


def backward(tensors: Tensors, switches: Switches, saved: Saved) -> tuple[Tensor, Tensor, Tensor]:
    """dq_THD, dk_SGD, dv_SGE in the dtypes of q, k, v."""
    q, k, v, query_start, key_start = _contiguous(tensors)
    shape = shaped(q, k, v, *switches)
    dq, dk, dv = (torch.empty_like(x) for x in (q, k, v))
    tile = backward_tile(max(shape.dim, shape.value_dim), q.element_size())
    module = kernels(f"{PACKAGE}.tiles_backward_triton", not q.is_cuda)
    scalars = (
        query_start, key_start, len(q), shape.heads, shape.kv_heads, float(shape.scale),
        float(shape.scale) / LOG2_E, float(shape.cap), switches.window,
    )  # fmt: skip
    constants, sequences = _constants(tensors, switches, tile), len(query_start) - 1
    read = (q, k, v, *saved)
    if k.numel():
        blocks = triton.cdiv(_longest(key_start, len(k)), tile.keys)
        grid = (blocks, shape.kv_heads, sequences)
        module.backward_keys[grid](*read, dk, dv, *scalars, **constants)
    if q.numel():
        blocks = triton.cdiv(_longest(query_start, len(q)), tile.queries)
        grid = (blocks, shape.heads, sequences)
        module.backward_queries[grid](*read, dq, *scalars, **constants)
    return dq, dk, dv


TILES = Algorithm(forward, backward)


def _refuses(arguments: Arguments) -> str:
    size = max(arguments["q_THD"].shape[-1], arguments["v_SGE"].shape[-1])
    return f"takes heads of at most {WIDEST} numbers, not {size}" if size > WIDEST else ""


def _work(arguments: Arguments) -> Any:
    q = arguments["q_THD"]
    tile = forward_tile(q.shape[-1], q.element_size())
    return tiled_work(arguments, tile.queries, "L2", q.element_size())


VARIANT = Variant(
    name="tiles",
    about="online softmax over tiles, a program a block of rows of a head",
    device="cuda",
    call=TILES.attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    gradients=True,
    interpreted=True,
    refuses=_refuses,
    work=_work,
)
