"""Attention over pages by a GPU's kernels: one new token a sequence by the decode kernel, prompts
by tiles over the keys they see, each in its rows of one batch.

Shape letters: T new tokens, H query heads, D key size, E value size, P pages, S page size, G
key/value heads, B sequences, N sequences of one kind, M their new tokens, C their visible keys.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from engine.kernels.attention import OPERATOR as ATTENTION
from engine.kernels.attention.gradients import Switches, Tensors
from engine.kernels.paged_attention import OPERATOR as PAGED_ATTENTION
from engine.kernels.paged_attention.policies.lean import Lean

if TYPE_CHECKING:
    from engine.kernels.paged_attention.split_kv import Prepared

Rows = tuple[np.ndarray, np.ndarray, np.ndarray]  # block table, starts, contexts
# Heads of queries, of keys, how wide their values are; and a window.
Planner: TypeAlias = "Callable[[tuple[int, int, int], int], Prepared]"


@dataclass(frozen=True, slots=True)
class Prompts:
    """Sequences of several new tokens: which tokens those are, which slots their keys, and where
    each sequence begins among them."""

    tokens_M: Tensor | None  # None: all there are
    slots_C: Tensor
    query_start_N1: Tensor
    key_start_N1: Tensor
    longest: int


class OperatorAttention:
    """Attention over pages. What a batch needs prepared is kept for all layers of its pass, told
    by its arrays themselves."""

    def __init__(self, variants: Mapping[str, str]) -> None:
        self.variants = variants
        self._rows: Rows | None = None
        self._kept: dict[tuple[int, ...], Any] = {}
        self._plan: Planner | None = None

    @contextmanager
    def planned_by(self, plan: "Planner") -> Iterator[None]:
        """Within it, answers' plans are `plan`'s, and nothing of them is kept."""
        self._rows, self._plan = None, plan
        try:
            yield
        finally:
            self._rows, self._plan = None, None

    def __call__(
        self, q_THD: Tensor, k_PSGD: Tensor, v_PSGE: Tensor, rows: Rows, switches: Switches
    ) -> Tensor | None:
        """o_THE in q's type, or None where no kernel takes the batch."""
        new_B = np.diff(rows[1])
        one_B, more_B = new_B == 1, new_B > 1
        if not self._takes(q_THD, k_PSGD, v_PSGE, bool(one_B.any()), bool(more_B.any())):
            return None
        if self._rows is None or any(a is not b for a, b in zip(rows, self._rows, strict=True)):
            self._rows, self._kept = rows, {}
        if not more_B.any():
            return self._answers(q_THD, k_PSGD, v_PSGE, rows, one_B, switches)
        o_MHE, said = self._prompts(q_THD, k_PSGD, v_PSGE, rows, more_B, switches)
        if said.tokens_M is None:
            return o_MHE
        o_THE = self._answers(q_THD, k_PSGD, v_PSGE, rows, one_B, switches)
        o_THE[said.tokens_M] = o_MHE
        return o_THE

    def _takes(
        self, q_THD: Tensor, k_PSGD: Tensor, v_PSGE: Tensor, answers: bool, prompts: bool
    ) -> bool:
        """Whether kernels take what is asked: on a GPU, or forced, by Triton's interpreter."""
        wanted = {PAGED_ATTENTION.name: answers, ATTENTION.name: prompts}
        if not (q_THD.is_cuda or all(self.variants.get(n) for n, asked in wanted.items() if asked)):
            return False
        from engine.kernels.paged_attention.split_kv import QUERIES, WIDEST

        wide = max(q_THD.shape[-1], v_PSGE.shape[-1])
        share = q_THD.shape[1] // k_PSGD.shape[2]
        return k_PSGD.dtype == q_THD.dtype and wide <= WIDEST and share <= QUERIES

    def _answers(
        self, q_THD: Tensor, k_PSGD: Tensor, v_PSGE: Tensor, rows: Rows, one_B: np.ndarray,
        switches: Switches,
    ) -> Tensor:  # fmt: skip
        """Rows of sequences with one new token; the others' are zero."""
        from engine.kernels.paged_attention.split_kv import RUNS, launch, planned

        heads = q_THD.shape[1], k_PSGD.shape[2], v_PSGE.shape[-1]
        key = (*heads, switches.window)
        if self._plan is not None:
            self._kept[key] = self._plan(heads, switches.window)
        elif key not in self._kept:
            row_N = np.flatnonzero(one_B)
            table_NP, token_N, context_N = (a[row_N] for a in rows)
            said = (table_NP, token_N, context_N, switches.window)
            self._kept[key] = planned(Lean(runs=RUNS), *said, heads, q_THD.device)
        o_THE = launch(self._kept[key], q_THD, k_PSGD, v_PSGE, switches.scale, switches.softcap)
        return o_THE.to(q_THD.dtype)

    def _prompts(
        self, q_THD: Tensor, k_PSGD: Tensor, v_PSGE: Tensor, rows: Rows, more_B: np.ndarray,
        switches: Switches,
    ) -> tuple[Tensor, Prompts]:  # fmt: skip
        """Rows of the other sequences alone."""
        from engine.kernels.attention.tiles import forward

        page = k_PSGD.shape[1]
        if (page,) not in self._kept:
            self._kept[page,] = _gathered(rows, more_B, page, q_THD.device)
        said: Prompts = self._kept[page,]
        q_MHD = q_THD if said.tokens_M is None else q_THD[said.tokens_M]
        k_CGD, v_CGE = (x.flatten(0, 1)[said.slots_C] for x in (k_PSGD, v_PSGE))
        tensors = Tensors(q_MHD, k_CGD, v_CGE, said.query_start_N1, said.key_start_N1)
        return forward(tensors, switches, None, said.longest)[0], said


def _gathered(rows: Rows, more_B: np.ndarray, page: int, on: torch.device) -> Prompts:
    table_BP, start_B1, context_B = rows
    new_B = np.diff(start_B1)
    new_N, seen_N = new_B[more_B], context_B[more_B].astype(np.int64)
    at_C = np.concatenate([np.arange(seen) for seen in seen_N])
    row_C = np.repeat(np.flatnonzero(more_B), seen_N)
    slots_C = table_BP[row_C, at_C // page].astype(np.int64) * page + at_C % page
    tokens_M = None if more_B.all() else np.flatnonzero(np.repeat(more_B, new_B))
    starts = (np.append(0, np.cumsum(each)) for each in (new_N, seen_N))
    slots, *begins = (torch.from_numpy(each).to(on) for each in (slots_C, *starts))
    tokens = None if tokens_M is None else torch.from_numpy(tokens_M).to(on)
    return Prompts(tokens, slots, begins[0], begins[1], int(new_N.max()))
