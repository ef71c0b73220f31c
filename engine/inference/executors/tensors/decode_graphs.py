"""CUDA graphs of decode passes: a pass of so many rows is recorded once and replayed for each step,
one launch in place of hundreds.

Inputs and attention's plans lie at fixed places, filled before each replay. A batch of other sizes
is filled up with rows that nobody reads. Shape letters: N rows of a recording, B rows of a batch,
W pages of the widest block table, R wanted logits, V vocabulary.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from engine.models.batch import Batch
from engine.models.config import ModelConfig
from engine.models.kv import PagedKV
from engine.models.model import Model

if TYPE_CHECKING:
    from engine.kernels.paged_attention.held_plan import HeldPlan
    from engine.kernels.paged_attention.split_kv import Prepared

MOST = 512  # rows of a batch


def fits(model: Model, kv: PagedKV) -> bool:
    """Whether a decode pass of the model never waits for the host, and reads nothing of a batch but
    tokens, positions, slots and pages: no experts, whose rows are counted there, no attention but
    the decode kernel's."""
    config = model.config
    special = (
        config.latent, config.experts, config.duo, config.streams, config.layer_inputs,
        config.recurrence,
    )  # fmt: skip
    rotaries = [each for each in (config.rotary, config.local_rotary) if each is not None]
    return (
        model.ops.attention is not None
        and getattr(torch, kv.spec.dtype) == model.dtype
        and all(each is None for each in special)
        and all(each.kind != "dynamic" for each in rotaries)
        and not (config.sinks or config.halves)
        and all(_narrow(config.at(layer)) for layer in range(config.layers))
    )


def _narrow(config: ModelConfig) -> bool:
    from engine.kernels.paged_attention.split_kv import QUERIES, WIDEST

    return config.head_dim <= WIDEST and config.heads // config.kv_heads <= QUERIES


def rows_for(count: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most half as many rows again."""
    power = 1 << (count - 1).bit_length()
    return power // 4 * 3 if power >= 4 and count <= power // 4 * 3 else power


class DecodeGraphs:
    """Recordings of one model over its cache; `nobody`: a slot where rows that are no request's
    write."""

    def __init__(self, model: Model, kv: PagedKV, nobody: int) -> None:
        self.model, self.kv, self.nobody = model, kv, nobody
        self.pages = min(kv.pages, -(-model.config.max_positions // kv.page_size))
        self.recorded: dict[int, _Recorded] = {}
        self.parts: dict[tuple[int, int, int], tuple[Tensor, Tensor]] = {}  # by heads

    def takes(self, batch: Batch) -> bool:
        """Whether the batch is one new token of each of its rows, over their own pages."""
        rows = len(batch.context_B)
        return (
            0 < rows == len(batch.tokens_T) <= MOST
            and batch.block_table_BP.shape[1] <= self.pages
            and batch.views is None
            and batch.paths_T is None
            and batch.vectors_NC is None
            and not batch.by_slot
        )

    @torch.inference_mode()
    def forward(self, batch: Batch) -> Tensor:
        """logits_RV as `Model.forward` gives them, within rounding of the batch's size."""
        rows = len(batch.context_B)
        size = rows_for(rows)
        recorded = self.recorded.get(size)
        if recorded is None:
            recorded = self.recorded[size] = _Recorded(self, size)
        recorded.fill(batch)
        logits_BV = recorded()[:rows]
        if len(batch.logits_at_R) == rows:
            return logits_BV.clone()
        return logits_BV[torch.from_numpy(batch.logits_at_R).to(logits_BV.device).long()]


class _Recorded:
    """A pass of N rows. On a processor, which records nothing, it is run again each time."""

    def __init__(self, of: DecodeGraphs, rows: int) -> None:
        device = torch.device(of.model.device)
        self.of, self.device = of, device
        self.host_3N = np.zeros((3, rows), np.int32)
        self.inputs_3N = torch.zeros(3, rows, dtype=torch.int32, device=device)
        self.table_NW = torch.zeros(rows, of.pages, dtype=torch.int32, device=device)
        self.context_B = np.ones(1, np.int32)
        self.plans: dict[tuple[tuple[int, int, int], int], HeldPlan] = {}
        there: Any = self.inputs_3N  # which the model takes as they are
        at: Any = torch.arange(rows, device=device)
        one_each, seen = np.arange(rows + 1, dtype=np.int32), np.ones(rows, np.int32)
        no_table = np.zeros((rows, 1), np.int32)
        self.batch = Batch(there[0], there[1], there[2], one_each, seen, no_table, at)
        self.logits_NV: Tensor | None = None
        self.replay: Callable[[], None] | None = None

    def fill(self, batch: Batch) -> None:
        """Take a batch of at most N rows."""
        rows, host = len(batch.context_B), self.host_3N
        host[0, :rows], host[1, :rows] = batch.tokens_T, batch.positions_T
        host[2, :rows] = batch.slots_T
        host[:2, rows:], host[2, rows:] = 0, self.of.nobody
        self.inputs_3N.copy_(torch.from_numpy(host))
        table_BP = np.ascontiguousarray(batch.block_table_BP)
        self.table_NW[:rows, : table_BP.shape[1]] = torch.from_numpy(table_BP).to(self.device)
        self.context_B = batch.context_B
        for plan in self.plans.values():
            plan.fill(batch.context_B)

    def __call__(self) -> Tensor:
        """logits_NV, which the next call writes over."""
        if self.replay is None:
            self.replay = self._recording() if self.device.type == "cuda" else self._run
        self.replay()
        assert self.logits_NV is not None
        return self.logits_NV

    def _run(self) -> None:
        attention = self.of.model.ops.attention
        assert attention is not None, "operations of a GPU"
        with attention.planned_by(self._plan):
            self.logits_NV = self.of.model.forward(self.batch, self.of.kv)

    def _recording(self) -> Callable[[], None]:
        """The pass once as it is, by which kernels are compiled and plans found, then recorded."""
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            self._run()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._run()
        return graph.replay

    def _plan(self, heads: tuple[int, int, int], window: int) -> "Prepared":
        from engine.kernels.paged_attention.held_plan import HeldPlan, parts_for

        plan = self.plans.get((heads, window))
        if plan is None:
            parts = self.of.parts
            if heads not in parts:  # shared by all recordings: one is replayed at a time
                parts[heads] = parts_for(heads, self.device)
            plan = self.plans[heads, window] = HeldPlan(self.table_NW, heads, window, parts[heads])
            plan.fill(self.context_B)
        return plan.ready
