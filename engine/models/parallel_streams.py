"""Parallel streams (ParScale, arXiv 2505.10475): P passes of one model, told apart by learnt
prefixes of keys and values, and mixed token by token into one.

Every function is of the model and its reference alike; with one stream and no prefix each gives
back what it got. Streams come one after another: stream p of B sequences is rows p·B … (p + 1)·B.
Shape letters: P streams, B sequences, T tokens, C hidden, G key/value heads, M tokens of a prefix,
D head size, N pages, S page size.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from engine.core.errors import BadInput
from engine.models.batch import Batch
from engine.models.config import ModelConfig, Streams
from engine.models.kv import PagedKV

Cache = list[dict[str, Tensor]]  # of each layer


def spread(config: ModelConfig, x: Tensor) -> Tensor:
    """A row of each stream for every row."""
    return x if config.streams is None else x.repeat(config.streams.count, *[1] * (x.ndim - 1))


def behind_prefix(w: Mapping[str, Tensor], k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """k and v of [P·B, T, G, D] behind the prefix of their stream, [P·B, M + T, G, D]."""
    if "prefix_key" not in w:
        return k, v
    both = []
    for role, x in (("prefix_key", k), ("prefix_value", v)):
        prefix_PMGD = w[role].transpose(1, 2).to(x.dtype)
        rows = prefix_PMGD.repeat_interleave(len(x) // len(prefix_PMGD), dim=0)
        both.append(torch.cat([rows, x], dim=1))
    return both[0], both[1]


def mixed(config: ModelConfig, w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Rows of all streams, [P·B, …, C] behind the last norm, as one row of each: [B, …, C]."""
    if config.streams is None:
        return x
    x_PBC = x.unflatten(0, (config.streams.count, -1))
    shares_PB1 = shares(config.streams, w, x_PBC)
    return (x_PBC * shares_PB1.to(x.dtype)).sum(0)


def shares(streams: Streams, w: Mapping[str, Tensor], x_PBC: Tensor) -> Tensor:
    """How much of each stream a row takes, float32 or more [P, B, …, 1]: they sum to 1, and none is
    below smoothing / P (equation 3; a feed-forward over all streams' states, then softmax)."""
    count, smoothing = streams.count, streams.smoothing
    if count == 1 or streams.fault == "uniform":
        logits_BP = torch.zeros(*x_PBC.shape[1:-1], count, device=x_PBC.device)
    else:
        states = x_PBC.movedim(0, -1).flatten(-2)  # hidden by hidden, as released checkpoints mix
        states = states.to(w["mix_in"].dtype)
        inner = F.silu(F.linear(states, w["mix_in"], w["mix_in.bias"]))
        logits_BP = F.linear(inner, w["mix_out"], w["mix_out.bias"]).float()
    discount = 1.0 - smoothing * (streams.fault != "undiscounted")
    share_BP = logits_BP.softmax(-1) * discount + smoothing / count
    if streams.fault == "summed":
        share_BP = torch.ones_like(share_BP)
    return share_BP.movedim(-1, 0)[..., None]


def pages_of(kv: PagedKV, streams: Streams) -> Cache:
    """The cache with a page of each stream in place of one of all, numbered page · P + stream:
    the same memory."""
    count = streams.count
    return [
        {
            name: tensor.view(len(tensor) * count, kv.page_size, -1, tensor.shape[3])
            for name, tensor in layer.items()
        }
        for layer in kv.tensors
    ]


def write_prefixes(prefixes: Cache, cache: Cache, kv: PagedKV, streams: Streams) -> None:
    """Put every layer's prefixes, [P, G, M, D], into the pages after those that are handed out."""
    for prefix, layer in zip(prefixes, cache, strict=True):
        for name, prefix_PGMD in prefix.items():
            pages_PNSGD = prefix_PGMD.transpose(1, 2).unflatten(1, (-1, kv.page_size))
            at = kv.pages * streams.count + np.arange(pages_PNSGD.shape[1]) * streams.count
            for stream, pages_NSGD in enumerate(pages_PNSGD):
                layer[name][torch.from_numpy(at + stream)] = pages_NSGD.to(layer[name].dtype)


def rows_of(batch: Batch, kv: PagedKV, streams: Streams) -> Batch:
    """The batch with a sequence of each stream for every sequence, behind its prefix.

    Raises BadInput for threads over views.
    """
    if batch.views is not None or batch.paths_T is not None:
        raise BadInput("parallel streams: threads over views are not theirs; take another model")
    count, size, length = streams.count, kv.page_size, streams.prefix
    tokens = len(batch.tokens_T)
    stream_P1 = np.arange(count, dtype=np.int32)[:, None]
    writes_P1 = stream_P1 * (streams.fault != "one_cache")  # else all streams in the first's pages
    reads_P1 = stream_P1 * (streams.fault != "one_prefix")
    page_T, offset_T = batch.slots_T // size, batch.slots_T % size
    own = np.where(
        batch.block_table_BP < 0, -1, batch.block_table_BP * count + writes_P1[..., None]
    )
    first_N = (kv.pages + np.arange(length // size)) * count
    prefix_PBN = np.broadcast_to((first_N + reads_P1)[:, None], (*own.shape[:2], len(first_N)))
    table_PBN = np.concatenate([prefix_PBN, own], axis=2)
    starts_PB = batch.query_start_B1[:-1] + stream_P1 * tokens
    return replace(
        batch,
        tokens_T=np.tile(batch.tokens_T, count),
        positions_T=np.tile(batch.positions_T, count),
        slots_T=((page_T * count + writes_P1) * size + offset_T).ravel().astype(np.int32),
        query_start_B1=np.append(starts_PB.ravel(), tokens * count).astype(np.int32),
        context_B=np.tile(batch.context_B + length, count).astype(np.int32),
        block_table_BP=table_PBN.reshape(-1, table_PBN.shape[2]).astype(np.int32),
        logits_at_R=(batch.logits_at_R + stream_P1 * tokens).ravel().astype(np.int32),
    )
