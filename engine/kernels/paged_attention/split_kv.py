"""Paged decode attention on a GPU (Triton): a plan's items as programs, then the merge kernel.

Shape letters as in `plan` and `reference`.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import triton
from torch import Tensor

from engine.kernels.operator import Arguments
from engine.kernels.paged_attention.decode_cpu import refuses
from engine.kernels.paged_attention.plan import Batch, Plan
from engine.kernels.paged_attention.split import Split
from engine.kernels.triton_source import kernels

WIDEST = 256  # numbers of a head that a program's tiles can hold
QUERIES = 64  # query heads of a key head that a program's tile can hold
TILE = 128  # keys that are never cut
# Runs of keys for each multiprocessor, so that others' loads fill a program's waits: 94% of what an
# H200's memory reads at 32 sequences of 16,384 keys, by one run 51% (`workbench bench gpu`).
RUNS = 4
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
    """o_THE in q's type (see `reference`) for at most one new token a sequence.

    The plan is made on the host: give `query_start_B1` and `context_B` there, or they are fetched.
    """
    start, context = (np.asarray(t.cpu()) for t in (query_start_B1, context_B))
    row_N = np.flatnonzero(np.diff(start))
    table_NP = block_table_BP[torch.from_numpy(row_N).to(block_table_BP.device)]
    heads = q_THD.shape[1], k_PSGD.shape[2], v_PSGE.shape[-1]
    said = (table_NP, start[row_N], context[row_N], window)
    ready = planned(split, *said, heads, q_THD.device)
    return launch(ready, q_THD, k_PSGD, v_PSGE, scale, softcap)


def planned(
    split: Split, table_NP: Tensor | np.ndarray, token_N: np.ndarray, context_N: np.ndarray,
    window: int, heads: tuple[int, int, int], device: torch.device,
) -> "Prepared":  # fmt: skip
    """A split's plan for sequences of one new token each, which is row `token_N` of the queries.

    `heads`: of queries, of keys, and how wide their values are.
    """
    batch = Batch(context_N.astype(np.int64), heads[1], TILE, 1, window)
    table = torch.as_tensor(table_NP)
    made = split.plan(batch, workers_of(device))
    return prepared(made, table, torch.from_numpy(token_N), (heads[0], heads[2]), device)


def workers_of(device: torch.device) -> int:
    """How many programs run at a time."""
    if device.type != "cuda":
        return INTERPRETED
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


class Prepared(NamedTuple):
    """A plan where the kernels find it: prepared once a step, launched for each layer."""

    table: Tensor
    token: Tensor
    items: list[Tensor]
    merges: list[Tensor]
    part_o: Tensor
    part_lse: Tensor


def prepared(
    made: Plan, table_NP: Tensor, token_N: Tensor, heads_size: tuple[int, int], device: torch.device
) -> Prepared:
    """A plan with one head a stream, on `device`; `heads_size`: query heads and their values'."""
    H, E = heads_size
    items = (made.first_K1, made.row_I, made.head_I, made.begin_I, made.end_I, made.part_I)
    merges = (made.row_M, made.head_M, made.parts_M2[:, 0], made.parts_M2[:, 1])
    return Prepared(
        _whole(table_NP, device),
        _whole(token_N, device),
        [_whole(torch.from_numpy(a), device) for a in items],
        [_whole(torch.from_numpy(np.ascontiguousarray(a)), device) for a in merges],
        torch.empty(max(made.parts, 1), H, E, dtype=torch.float32, device=device),
        torch.empty(max(made.parts, 1), H, dtype=torch.float32, device=device),
    )


def launch(
    ready: Prepared, q_THD: Tensor, k_PSGD: Tensor, v_PSGE: Tensor, scale: float, softcap: float
) -> Tensor:
    """o_THE of a prepared plan: a program an item, or a run of them, then the merges."""
    (T, H, D), (_, S, G, E) = q_THD.shape, v_PSGE.shape
    interpreted = not q_THD.is_cuda
    out = torch.zeros(T, H, E, dtype=q_THD.dtype, device=q_THD.device)
    table, token, items, merges, part_o, part_lse = ready
    if not len(items[1]):
        return out
    module = kernels("engine.kernels.paged_attention.split_kv_triton", interpreted)
    wide = k_PSGD.dtype == torch.float32
    shape = {"E": E, "SHARE": H // G, "BLOCK_E": max(16, triton.next_power_of_2(E))}
    module.partial[(len(items[0]) - 1,)](
        q_THD.contiguous(), k_PSGD.contiguous(), v_PSGE.contiguous(), table, token, *items,
        out, part_o, part_lse, table.shape[1], H, scale, softcap,
        S=S, G=G, D=D, **shape, CAPPED=softcap > 0, PRECISION="ieee" if wide else "tf32",
        BLOCK_M=max(16, triton.next_power_of_2(H // G)),
        BLOCK_N=TILE if interpreted else 32 if wide or D > 128 else 64,
        BLOCK_D=max(16, triton.next_power_of_2(D)), INTERPRET=interpreted,
    )  # fmt: skip
    if len(merges[0]):
        module.merge[(len(merges[0]), H // G)](part_o, part_lse, token, *merges, out, H, **shape)
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
