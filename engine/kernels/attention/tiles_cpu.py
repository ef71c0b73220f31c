"""Tiled attention on the processor (numba): tasks claimed by threads, gradients from lse.

Computed in float32. Extra memory: lse, and scratch of each thread that no length changes; backward,
lse and delta.
"""

from typing import Any

import numpy as np
import torch
from numba import get_num_threads, prange
from torch import Tensor

from engine.kernels.attention import backward_cpu, forward_cpu
from engine.kernels.attention.arguments import KEYS, Array, Given, Shape, flat, given, shaped
from engine.kernels.attention.gradients import Algorithm, Saved, Switches, Tensors
from engine.kernels.attention.product_cpu import BLOCK
from engine.kernels.attention.split import blocks
from engine.kernels.attention.work import tiled_work
from engine.kernels.claims import STRIDE
from engine.kernels.compiled import address, call, kernel, remembered
from engine.kernels.matmul.pack import aligned
from engine.kernels.operator import Variant

# Blocks of queries that share what is read of keys and values, the most that leave enough tasks.
# With AVX-512 (Zen 5, two threads, 8 heads, 2,048 tokens) four take 0.93 of one's time dense and
# 0.99 causal at size 64, 0.84 and 0.90 at 128; without AVX-512 they gain more. Eight take 0.97 to
# 0.98 of four's (a Xeon with AVX-512, 512 to 2,048 tokens).
TOGETHER = (8, 4)


@kernel
def _spread(place, tasks, given, shape, results, work, room, counters, threads):
    """Run the body at `place` on every thread, each with scratch of its own."""
    for thread in prange(threads):
        at = np.int64(thread) * room
        call(place, (tasks, given, shape, results, work, at, counters))


def run(
    body: Any, room: int, tasks: Array, given: Given, shape: Shape, results: tuple[Array, ...]
) -> None:
    """Run a body that claims tasks, on all threads; `room` floats of scratch each."""
    if not len(tasks):
        return
    threads = min(get_num_threads(), len(tasks))
    work, counters = aligned(room * threads, np.float32), np.zeros(STRIDE, np.int64)
    place = address(body, tasks, given, shape, results, work, 0, counters)
    asked = place, tasks, given, shape, results, work, room, counters, threads
    remembered(_spread, *asked)(*asked)


def _together(count: int) -> int:
    """Blocks of queries of a task, where `count` of them leave enough tasks for every thread."""
    most = count // (4 * get_num_threads())
    return next((together for together in TOGETHER if together <= most), 1)


def forward(tensors: Tensors, switches: Switches, keys: int = KEYS) -> tuple[Tensor, Tensor]:
    """o_THE in q's dtype, lse_TH in float32; tiles of `keys` keys."""
    of = given(*tensors)
    T, H, _ = tensors.q_THD.shape
    lengths = np.diff(of.query_start).tolist()
    together = _together(sum(-(-length // BLOCK) for length in lengths) * H)
    scale, causal, window, softcap = switches
    shape = shaped(*tensors[:3], scale, causal, window, softcap, keys, together=together)
    out, lse = np.empty(T * H * shape.value_dim, np.float32), np.empty(T * H, np.float32)
    tasks = blocks(lengths, H, together * BLOCK, last_first=shape.causal)
    room = forward_cpu.room(shape.dim, shape.value_dim, keys, together)
    run(forward_cpu.forward, room, tasks, of, shape, (out, lse))
    o_THE = torch.from_numpy(out.reshape(T, H, shape.value_dim)).to(tensors.q_THD.dtype)
    return o_THE, torch.from_numpy(lse.reshape(T, H))


def backward(tensors: Tensors, switches: Switches, saved: Saved) -> tuple[Tensor, Tensor, Tensor]:
    """dq_THD, dk_SGD, dv_SGE in the dtypes of q, k, v."""
    of = given(*tensors)
    shape = shaped(tensors.q_THD, tensors.k_SGD, tensors.v_SGE, *switches)
    dq, dk, dv = (np.empty(x.numel(), np.float32) for x in tensors[:3])
    results = (flat(saved.do_THE), flat(saved.lse_HT), flat(saved.delta_HT), dq, dk, dv)
    room = backward_cpu.room(shape.dim, shape.value_dim)
    keys = blocks(np.diff(of.key_start).tolist(), shape.kv_heads, BLOCK)
    run(backward_cpu.backward_keys, room, keys, of, shape, results)
    rows = blocks(np.diff(of.query_start).tolist(), shape.heads, BLOCK, last_first=shape.causal)
    run(backward_cpu.backward_queries, room, rows, of, shape, results)
    dq_THD, dk_SGD, dv_SGE = (
        torch.from_numpy(d.reshape(x.shape)).to(x.dtype)
        for d, x in zip((dq, dk, dv), tensors[:3], strict=True)
    )
    return dq_THD, dk_SGD, dv_SGE


TILES = Algorithm(forward, backward)


VARIANT = Variant(
    name="tiles_cpu",
    about="online softmax over tiles, a block of rows of a head a task",
    device="cpu",
    call=TILES.attention,
    dtypes=("float32", "bfloat16", "float16"),
    rank=2,
    gradients=True,
    work=lambda given: tiled_work(given, BLOCK, "L2"),
)
