"""Nano-batches on this machine: two threads, each with a part of a step's sequences, go through the
layers beside one another. While one computes products, the other attends.

Shape letters: T new tokens, R rows of logits, V vocabulary.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from threading import Lock
from typing import Any, Protocol

import numba
import numpy as np
import torch
from torch import Tensor

from engine.inference.executors.executor import Built
from engine.inference.executors.settings import Settings
from engine.inference.executors.tensors.offloaded_attention import plain
from engine.inference.executors.tensors.real_executor import RealExecutor
from engine.inference.executors.tensors.real_executor import build as build_real
from engine.models.batch import Batch
from engine.models.kv import PagedKV
from engine.models.model import Model
from engine.models.ops import kernel_ops

PARTS = 2


class How(Protocol):
    """What `engine.inference.executors.nano_batches.NanoBatchesHere` says."""

    units: bool

    @property
    def fault(self) -> str:
        """none, swapped or in_turn."""
        ...


class NanoBatchedModel(Model):
    """A model whose forward pass has two parts. Rows are the bits of a pass in one part."""

    def __init__(self, model: Model, how: How) -> None:
        """`how.units`: products of one part at a time, and attention of one."""
        ops = kernel_ops()
        self.attend = ops.paged_attention
        dtype = str(model.dtype).removeprefix("torch.")
        super().__init__(
            model.config, model.weights, dtype, ops=replace(ops, paged_attention=self._attention)
        )
        self.products: AbstractContextManager[Any] = Lock() if how.units else nullcontext()
        self.memory: AbstractContextManager[Any] = Lock() if how.units else nullcontext()
        self.fault = how.fault
        self.workers = ThreadPoolExecutor(PARTS, "part", _begin)

    @torch.inference_mode()
    def forward(self, batch: Batch, kv: PagedKV) -> Tensor:
        parts = halves(batch)
        if len(parts) == 1:
            return self._part(batch, kv)
        if self.fault == "in_turn":
            return torch.cat([self.workers.submit(self._part, one, kv).result() for one in parts])
        going = [self.workers.submit(self._part, one, kv) for one in parts]
        rows = [one.result() for one in going]
        return torch.cat(rows[::-1] if self.fault == "swapped" else rows)

    @torch.inference_mode()
    def _part(self, batch: Batch, kv: PagedKV) -> Tensor:
        with self.products:
            return super().forward(batch, kv)

    def _attention(self, *given: Any, **limits: Any) -> Tensor:
        """Attention, for which the lane of products is left to the other part."""
        with _without(self.products), self.memory:
            return self.attend(*given, **limits)


def _begin() -> None:
    """Each worker has its part of the processor's cores; it ends with the model."""
    numba.set_num_threads(max(1, numba.get_num_threads() // PARTS))
    torch.set_num_threads(max(1, torch.get_num_threads() // PARTS))


@contextmanager
def _without(lock: AbstractContextManager[Any]) -> Iterator[None]:
    """The lock is let go of within."""
    if not isinstance(lock, type(Lock())):
        yield
        return
    lock.release()
    try:
        yield
    finally:
        lock.acquire()


def halves(batch: Batch) -> list[Batch]:
    """The batch in two, by sequences, so that tokens are as even as may be; as it is where it has
    but one sequence, or some that see others' blocks, as those of given rows do."""
    count, start_B1 = len(batch.context_B), batch.query_start_B1
    if count < PARTS or batch.views is not None or batch.vectors_NC is not None:
        return [batch]
    cut = int(np.searchsorted(start_B1[1:], start_B1[-1] / 2)) + 1
    cut = min(max(cut, 1), count - 1)
    return [_part(batch, 0, cut), _part(batch, cut, count)]


def _part(batch: Batch, first: int, stop: int) -> Batch:
    """Sequences `first` to before `stop`."""
    begin, end = int(batch.query_start_B1[first]), int(batch.query_start_B1[stop])
    own = (batch.logits_at_R >= begin) & (batch.logits_at_R < end)
    return replace(
        batch,
        tokens_T=batch.tokens_T[begin:end],
        positions_T=batch.positions_T[begin:end],
        slots_T=batch.slots_T[begin:end],
        query_start_B1=batch.query_start_B1[first : stop + 1] - begin,
        context_B=batch.context_B[first:stop],
        block_table_BP=batch.block_table_BP[first:stop],
        logits_at_R=batch.logits_at_R[own] - begin,
        paths_T=None if batch.paths_T is None else batch.paths_T[begin:end],
        states=None,
    )


def build(config: Settings, how: How) -> Built:
    """The real executor with a model whose passes have two parts. Raises BadInput for models
    whose layers cache other things than keys and values."""
    built = build_real(config)
    executor = built.executor
    assert isinstance(executor, RealExecutor)
    plain(executor.model.config, executor.model.spec)
    executor.model = NanoBatchedModel(executor.model, how)
    executor.facts = replace(
        executor.facts, both_ways=False
    )  # a text's tokens may be in both parts
    return built
