"""Paged decode attention on a GPU (Triton): a plan's items as programs, then the merge kernel.

Shape letters as in `plan` and `reference`.
"""

from functools import partial
from typing import Any

import numpy as np
import torch
import triton
from torch import Tensor

from engine.kernels.operator import Arguments
from engine.kernels.paged_attention.decode_cpu import batch_of, refuses
from engine.kernels.paged_attention.plan import Plan
from engine.kernels.paged_attention.split import Split
from engine.kernels.triton_source import kernels

WIDEST = 256  # numbers of a head that a program's tiles can hold
QUERIES = 64  # query heads of a key head that a program's tile can hold
TILE = 128  # keys that are never cut
INTERPRETED = 2  # workers the interpreter plans for: one after another, so few


def _whole(tensor: Tensor, device: torch.device) -> Any:
    return tensor.to(device=device, dtype=torch.int32).contiguous()


def decode(
    split: Split,
    q_THD: Tensor,
    k_PSGD: Tensor,
    v_PSGE: Tensor,
    block_table_BP: Tensor,
    query_start_B1: Tensor,
    context_B: Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
) -> Tensor:
    """o_THE in float32 (see `reference`) for at most one new token a sequence.

    The plan is made on the host: give `query_start_B1` and `context_B` there, or they are fetched.
    """
    device, on_gpu = q_THD.device, q_THD.is_cuda
    start, context = (np.asarray(t.cpu()) for t in (query_start_B1, context_B))
    row_N, batch = batch_of(k_PSGD.shape[2], start, context, window, TILE, 1)
    workers = (
        torch.cuda.get_device_properties(device).multi_processor_count if on_gpu else INTERPRETED
    )
    table_NP = block_table_BP[torch.from_numpy(row_N).to(block_table_BP.device)]
    token_N = torch.from_numpy(start[row_N])
    made = split.plan(batch, workers)
    return run_plan(made, q_THD, k_PSGD, v_PSGE, table_NP, token_N, scale, softcap)


def run_plan(
    made: Plan, q_THD: Tensor, k_PSGD: Tensor, v_PSGE: Tensor, table_NP: Tensor, token_N: Tensor,
    scale: float, softcap: float,
) -> Tensor:  # fmt: skip
    """o_THE of a plan with one head a stream: a program an item, or a run of them."""
    (T, H, D), (_, S, G, E), device = q_THD.shape, v_PSGE.shape, q_THD.device
    interpreted = not q_THD.is_cuda
    out = torch.zeros(T, H, E, dtype=torch.float32, device=device)
    if not len(made.row_I):
        return out
    first = made.first_K1
    numbers = [
        _whole(torch.from_numpy(a), device)
        for a in (first, made.row_I, made.head_I, made.begin_I, made.end_I, made.part_I)
    ]
    table, token = _whole(table_NP, device), _whole(token_N, device)
    part_o = torch.empty(max(made.parts, 1), H, E, dtype=torch.float32, device=device)
    part_lse = torch.empty(max(made.parts, 1), H, dtype=torch.float32, device=device)
    module = kernels("engine.kernels.paged_attention.split_kv_triton", interpreted)
    wide = k_PSGD.dtype == torch.float32
    shape = {"E": E, "SHARE": H // G, "BLOCK_E": max(16, triton.next_power_of_2(E))}
    module.partial[(len(first) - 1,)](
        q_THD.contiguous(), k_PSGD.contiguous(), v_PSGE.contiguous(), table, token, *numbers,
        out, part_o, part_lse, table.shape[1], H, scale, softcap,
        S=S, G=G, D=D, **shape, CAPPED=softcap > 0, PRECISION="ieee" if wide else "tf32",
        BLOCK_M=max(16, triton.next_power_of_2(H // G)),
        BLOCK_N=TILE if interpreted else 32 if wide or D > 128 else 64,
        BLOCK_D=max(16, triton.next_power_of_2(D)), INTERPRET=interpreted,
    )  # fmt: skip
    if len(made.row_M):
        merges = [
            _whole(torch.from_numpy(np.ascontiguousarray(a)), device)
            for a in (made.row_M, made.head_M, made.parts_M2[:, 0], made.parts_M2[:, 1])
        ]
        module.merge[(len(made.row_M), H // G)](part_o, part_lse, token, *merges, out, H, **shape)
    return out


def refused(given: Arguments) -> str:
    """Why the kernels cannot take these arguments, or ""."""
    size = max(given["q_THD"].shape[-1], given["v_PSGE"].shape[-1])
    share = given["q_THD"].shape[1] // given["k_PSGD"].shape[2]
    if size > WIDEST:
        return f"takes heads of at most {WIDEST} numbers, not {size}"
    if share > QUERIES:
        return f"takes at most {QUERIES} query heads a key head, not {share}"
    return refuses(given)


def variant_facts(split: Split) -> dict[str, Any]:
    """What the Triton variants have in common."""
    return {
        "device": "cuda",
        "call": partial(decode, split),
        "dtypes": ("float32", "bfloat16", "float16"),
        "interpreted": True,
        "refuses": refused,
    }
