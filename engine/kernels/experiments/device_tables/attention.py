"""Attention of prompts, of prompts behind cached tokens, and of answers: our kernels and torch's.

Queries in groups over eight heads of keys (one on a processor), 128 numbers each, bfloat16. A row
names its kernel. Keys and values lie ready: none is laid into a cache within the time.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention

from engine.kernels.attention.gradients import Switches, Tensors
from engine.kernels.attention.tiles import forward
from engine.kernels.experiments.device_tables.timing import Call, Refused, Shape, timed
from engine.kernels.paged_attention.policies.lean import Lean
from engine.kernels.paged_attention.split_kv import launch, planned

GROUPS, DIM, PAGE = 8, 128, 16  # heads of keys, their numbers, tokens of a page
MOST = 2**18  # tokens of a batch of prompts
HELD = 2**22  # and keys of a batch of answers
RUNS = 2  # programs for each multiprocessor
PROMPTS = tuple(product((32, 64), (1, 4, 16), (128, 512, 1024, 2048, 4096, 8192, 16384)))
CHUNKS = tuple(product((32, 64), (1, 4), (128, 512, 2048), (2048, 8192, 32768)))
ANSWERS = tuple(product((32, 64), (1, 4, 16, 64, 256), (128, 512, 2048, 8192, 32768)))
FLASH = ("flash", SDPBackend.FLASH_ATTENTION)
# torch hands cuDNN a whole mask where keys lie before the prompt's, which no engine does.
LIBRARY, BEHIND = (("cudnn", SDPBackend.CUDNN_ATTENTION), FLASH), (FLASH,)


def rows(device: str) -> Iterator[Shape | Refused]:
    """Every shape by every kernel that takes it."""
    small = device == "cpu"
    for heads, batch, new in ((2, 1, 32),) if small else PROMPTS:
        if batch * new <= MOST:
            yield from _prompts(device, heads, batch, new, 0)
    for heads, batch, new, cached in ((2, 1, 16, 32),) if small else CHUNKS:
        yield from _prompts(device, heads, batch, new, cached)
    for heads, batch, context in ((2, 2, 40),) if small else ANSWERS:
        if batch * context <= HELD:
            yield from _answers(device, heads, batch, context)


def _groups(device: str) -> int:
    return 1 if device == "cpu" else GROUPS


def _told(device: str, phase: str, heads: int, batch: int, new: int, cached: int) -> dict[str, Any]:
    shape = {"heads": heads, "kv_heads": _groups(device), "head_dim": DIM, "batch": batch}
    return {"phase": phase, **shape, "isl": new, "cached_step": cached, "laid": 0}


def _normal(*shape: int, device: str) -> Tensor:
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


def _prompts(
    device: str, heads: int, batch: int, new: int, cached: int
) -> Iterator[Shape | Refused]:
    keys, told = new + cached, _told(device, "context", heads, batch, new, cached)
    q_THD = _normal(batch * new, heads, DIM, device=device)
    k_SGD, v_SGD = (_normal(batch * keys, _groups(device), DIM, device=device) for _ in range(2))
    starts = [torch.arange(batch + 1, device=device) * each for each in (new, keys)]
    tensors, switches = Tensors(q_THD, k_SGD, v_SGD, *starts), Switches(DIM**-0.5, True)
    yield timed(told, "tiles", [partial(forward, tensors, switches, None, new)], device)
    q, k, v = (
        x.view(batch, -1, x.shape[1], DIM).transpose(1, 2).contiguous()
        for x in (q_THD, k_SGD, v_SGD)
    )
    mask = causal_lower_right(new, keys) if cached else None
    for name, backend in (BEHIND if cached else LIBRARY) if device == "cuda" else ():

        def call(mask: Any = mask) -> Tensor:
            return scaled_dot_product_attention(
                q, k, v, mask, is_causal=not cached, enable_gqa=True
            )

        yield _library(name, backend, call, told, device)


def _library(
    name: str, backend: SDPBackend, call: Call, told: Shape, device: str
) -> Shape | Refused:
    with sdpa_kernel(backend):
        return timed(told, name, [call], device)


def _answers(device: str, heads: int, batch: int, context: int) -> Iterator[Shape | Refused]:
    told, pages = _told(device, "generation", heads, batch, 1, context - 1), -(-context // PAGE)
    q_THD = _normal(batch, heads, DIM, device=device)
    k, v = (_normal(batch * pages, PAGE, _groups(device), DIM, device=device) for _ in range(2))
    table_BP = torch.arange(batch * pages, device=device).view(batch, pages)
    start, contexts = np.arange(batch + 1), np.full(batch, context)
    said = (table_BP, start[:-1], contexts, 0)
    ready = planned(Lean(runs=RUNS), *said, (heads, _groups(device), DIM), q_THD.device)
    calls = [partial(launch, ready, q_THD, k, v, DIM**-0.5, 0.0)]
    yield timed(told, "lean", calls, device)
    keys, values = (
        x.view(batch, pages * PAGE, _groups(device), DIM)[:, :context].transpose(1, 2)
        for x in (k, v)
    )
    for name, backend in LIBRARY if device == "cuda" else ():

        def call() -> Tensor:
            return scaled_dot_product_attention(q_THD[:, :, None], keys, values, enable_gqa=True)

        yield _library(name, backend, call, told, device)
