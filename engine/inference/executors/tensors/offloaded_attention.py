"""Offloaded attention on real processes: `ComputeModel` sends each layer's queries, keys and values
to processes that `attend`, each of which keeps the paged cache of some heads, and gets the
attention's output back.

Shape letters: T new tokens, B sequences, P pages of the longest, H query heads, G key and value
heads, D head size.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from engine.cache.tensors import Storage
from engine.core.errors import BadInput
from engine.inference.executors.offloaded import Fault
from engine.inference.executors.settings import Settings
from engine.inference.executors.tensors.real_executor import RealExecutor, executor_for
from engine.models.batch import Batch
from engine.models.config import ModelConfig
from engine.models.kv import CacheSpec, PagedKV, cache_spec
from engine.models.model import Model
from engine.models.ops import kernel_ops

END, COPY, STEP = range(3)  # what the compute process asks
HEADER = 4  # numbers of a request: what, and three sizes


class Channel(Protocol):
    """The way to another process."""

    def send(self, tensors: Sequence[Tensor], task: str) -> None: ...

    def receive(
        self, shapes: Sequence[tuple[tuple[int, ...], torch.dtype]], task: str
    ) -> list[Tensor]:
        """The next message, which holds tensors of those shapes."""
        ...


class ComputeModel(Model):
    """A model that has all but a cache. It keeps a step's own keys until they are sent."""

    def __init__(self, model: Model, tokens: int, channels: Sequence[Channel]) -> None:
        """`tokens`: of a step at most; `channels`: to who attends, who share the heads. Raises
        BadInput for what is not plain attention, or does not divide."""
        ops = replace(kernel_ops(), paged_attention=self._attention)
        dtype = str(model.dtype).removeprefix("torch.")
        plain(model.config, model.spec)
        shared(model.config, len(channels))
        super().__init__(model.config, model.weights, dtype, ops=ops)
        self.channels = channels
        self.staged = PagedKV(CacheSpec(self.spec.entries[:1], self.spec.dtype), 1, tokens)
        self.staged.tensors *= self.config.layers  # one after another they use the same room

    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        tokens, tables = len(batch.tokens_T), batch.block_table_BP
        arrays = batch.slots_T, batch.query_start_B1, batch.context_B, tables
        told = [torch.from_numpy(each.astype(np.int32)) for each in arrays]
        for channel in self.channels:
            channel.send([header(STEP, tokens, *tables.shape)], "step")
            channel.send(told, "step")
        own = replace(batch, slots_T=np.arange(tokens, dtype=np.int32))
        return super().forward(own, self.staged)

    def _attention(
        self, q_THD: Tensor, k_PSGD: Tensor, v_PSGD: Tensor, *_: Any, **__: Any
    ) -> Tensor:
        tokens, parts = len(q_THD), len(self.channels)
        k_TGD, v_TGD = (each.flatten(0, 1)[:tokens] for each in (k_PSGD, v_PSGD))
        every = [each.chunk(parts, 1) for each in (q_THD, k_TGD, v_TGD)]
        for channel, own in zip(self.channels, zip(*every, strict=True), strict=True):
            channel.send(own, "query, key, value")
        found = []
        for channel, q_THD in zip(self.channels, every[0], strict=True):
            found += channel.receive([(tuple(q_THD.shape), q_THD.dtype)], "attention")
        return torch.cat(found, 1)


class OtherStorage(Storage):
    """The cache's pages, which lie in the other processes."""

    def __init__(self, channels: Sequence[Channel], staged: PagedKV, pages: int) -> None:
        self.channels, self.kv, self.scratch = channels, staged, pages

    def copy(self, pairs: np.ndarray) -> None:
        for channel in self.channels if len(pairs) else ():
            channel.send([header(COPY, len(pairs))], "copy")
            channel.send([torch.from_numpy(pairs.astype(np.int32))], "copy")

    def swap_out(self, pairs: np.ndarray) -> None:
        assert not len(pairs)

    swap_in = move_tokens = swap_out

    def move_states(self, out: np.ndarray, back: np.ndarray) -> None:
        assert not len(out) and not len(back)


def header(what: int, *sizes: int) -> Tensor:
    """What is asked, and the sizes of what comes next."""
    return torch.tensor([what, *sizes, *[0] * (HEADER - 1 - len(sizes))], dtype=torch.int32)


def plain(config: ModelConfig, spec: CacheSpec) -> None:
    """Raises BadInput where layers cache unlike things, or other things than keys and values."""
    names = {tuple(entry[0] for entry in layer) for layer in spec.entries}
    if names != {("k", "v")} or len(set(spec.entries)) > 1 or config.sinks or config.streams:
        raise BadInput(
            f"{config.architecture}: attention is offloaded of models whose layers all cache the "
            "same keys and values; choose another model"
        )


def shared(config: ModelConfig, parts: int) -> ModelConfig:
    """What one of `parts` processes attends for. Raises BadInput where heads do not divide."""
    if config.kv_heads % parts:
        raise BadInput(
            f"executor.workers {parts}: {config.kv_heads} key and value heads do not divide"
        )
    return replace(config, heads=config.heads // parts, kv_heads=config.kv_heads // parts)


def compute_executor(
    config: Settings, small: Settings, model: Model, channels: Sequence[Channel]
) -> RealExecutor:
    """The executor of the compute process; `small` is `config` with a page of its own. Raises
    BadInput for what needs the cache here."""
    if config.host_pages or config.speculation.drafts or config.attention_every:
        raise BadInput(
            "executor offloaded_here: the cache lies elsewhere; leave host_pages, speculation and "
            "attention_every out"
        )
    computing = ComputeModel(model, config.step_tokens + config.max_running, channels)
    executor = executor_for(small, computing, config.model, model.config.eos)
    executor.storage = OtherStorage(channels, computing.staged, config.pages)
    return executor


def attend(
    config: ModelConfig, dtype: str, pages: int, page_size: int, channel: Channel,
    fault: Fault = "none",
) -> int:  # fmt: skip
    """Keep the cache of the heads of `config` and answer steps until told to end; returns the
    bytes it keeps."""
    spec = cache_spec(config, dtype)
    storage, attention = Storage(spec, pages, page_size, 0), kernel_ops().paged_attention
    heads, number = (config.heads, config.head_dim), getattr(torch, spec.dtype)
    cached = (config.kv_heads, config.head_dim)
    while True:
        (asked,) = channel.receive([((HEADER,), torch.int32)], "what comes")
        what, tokens, sequences, wide = asked.tolist()
        if what == END:
            return storage.kv.bytes()
        if what == COPY:
            (pairs,) = channel.receive([((tokens, 2), torch.int32)], "copy")
            storage.copy(pairs.numpy())
            continue
        sizes = (tokens,), (sequences + 1,), (sequences,), (sequences, wide)
        told = channel.receive([(size, torch.int32) for size in sizes], "step")
        slots_T, start_B1, context_B, table_BP = (each.numpy() for each in told)
        for layer, cache in enumerate(storage.kv.layers):
            shapes = [
                ((tokens, *heads), torch.float32), ((tokens, *cached), number),
                ((tokens, *cached), number),
            ]  # fmt: skip
            q_THD, k_TGD, v_TGD = channel.receive(shapes, "query, key, value")
            k_PSGD, v_PSGD = cache["k"], cache["v"]
            late = fault == "late"
            if not late:
                _keep(cache, slots_T, k_TGD, v_TGD)
            o_THD = attention(
                q_THD, k_PSGD, v_PSGD, table_BP, start_B1, context_B, scale=config.scale(layer),
                window=config.windows[layer], softcap=config.attention_softcap,
            )  # fmt: skip
            if late:
                _keep(cache, slots_T, k_TGD, v_TGD)
            channel.send([o_THD], "attention")


def _keep(cache: dict[str, Tensor], slots_T: np.ndarray, k_TGD: Tensor, v_TGD: Tensor) -> None:
    slots = torch.from_numpy(slots_T).long()
    cache["k"].flatten(0, 1)[slots] = k_TGD
    cache["v"].flatten(0, 1)[slots] = v_TGD
