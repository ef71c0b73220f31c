"""Drafter: a small model that proposes tokens, over pages of its own under the same block table.

What the scheduler moves, copies, shares and gives back of the target's pages holds for the draft's
too: page p of both caches belongs to the same tokens. Prompts are computed by both in one step.

Shape letters: B sequences of the step, S sequences that draft.
"""

from dataclasses import replace

import numpy as np

from engine.cache.tensors import Storage
from engine.inference.executors.costs.forward_work import ForwardWork, Shape
from engine.inference.executors.tensors.draft_tree import DraftTree
from engine.inference.executors.tensors.gather import one_each, pack_rows, see
from engine.inference.executors.tensors.sampler import Drawn, Sampler
from engine.inference.requests.step import Step
from engine.models.batch import Batch
from engine.models.fused_step import Onward
from engine.models.model import Model


class Drafter:
    """A draft model over its own paged cache."""

    def __init__(self, model: Model, storage: Storage, sampler: Sampler, width: int = 1) -> None:
        """`width`: drafts that may stand side by side."""
        self.model, self.storage, self.sampler, self.width = model, storage, sampler, width
        self.work = ForwardWork(model.config, str(model.dtype).removeprefix("torch."))
        self.flops = self.bytes = 0.0  # of the last step

    def draft(self, step: Step) -> Drawn:
        """Write the step's drafts into their rows; what those of sampling requests were drawn from.

        First what the step computes anyway, drafts apart; then a pass for each further draft, all
        in one call where the model can.
        """
        drawn = Drawn()
        self.move(step)
        if not len(step.rows_B):
            return drawn
        drafts_B = np.zeros_like(step.queries_B) if step.drafts_B is None else step.drafts_B
        batch = pack_rows(step.rows, step.rows_B, step.starts_B, step.queries_B - drafts_B)
        asks_S = np.flatnonzero(drafts_B)
        batch.logits_at_R = batch.query_start_B1[asks_S + 1] - 1
        if step.parents_N is not None:
            self.trees(step, batch, asks_S, drafts_B, step.parents_N)
        elif not self._in_one_call(step, batch, asks_S, drafts_B):
            self._step_by_step(step, batch, asks_S, drafts_B, drawn)
        return drawn

    def move(self, step: Step) -> None:
        """Begin a step: what the target's pages do, these do."""
        storage, self.flops, self.bytes = self.storage, 0.0, 0.0
        storage.move_tokens(step.moves.slots)
        storage.swap_out(step.moves.swap_out)
        storage.copy(step.moves.copies)
        storage.swap_in(step.moves.swap_in)

    def realign(self, tables_DP: np.ndarray, starts_D: np.ndarray, off: int) -> None:
        """Keys and values of the decodes in a rectangle and back."""
        self.storage.realign(tables_DP, starts_D, off)

    def logits(self, batch: Batch, rows_R: np.ndarray) -> np.ndarray:
        """logits_RV of a pass; row r of them is of row `rows_R[r]` of the persistent batch."""
        logits_RV = self.model.forward(batch, self.storage.kv).cpu().numpy()
        self._count(self._shape(batch, len(logits_RV)))
        return logits_RV

    def _in_one_call(
        self, step: Step, batch: Batch, asks_S: np.ndarray, drafts_B: np.ndarray
    ) -> bool:
        """Let the model go on by itself; False where it cannot, or rows want more than a draw."""
        fused, rows, rows_S = self.model.fused, step.rows, step.rows_B[asks_S]
        wishes = self.sampler.onward(step, rows_S) if len(rows_S) and fused is not None else None
        if fused is None or wishes is None:
            return False
        known_S, counts_S = rows.known[rows_S], drafts_B[asks_S]
        pages = -(-int((known_S + counts_S).max()) // rows.page_size)
        tables_SP = rows.tables[rows_S, :pages]
        scratch = self.storage.scratch
        onward = Onward(rows_S, known_S, counts_S, rows.tokens, tables_SP, scratch, wishes)
        fused.decode_loop(batch, self.storage.kv, onward)
        self._count(self._shape(batch, len(rows_S)))
        for ahead in range(1, int(counts_S.max())):
            starts_S = known_S[counts_S > ahead] + (ahead - 1)
            self._count(self.work.decode_shape(starts_S, len(starts_S)))
        return True

    def _step_by_step(
        self, step: Step, batch: Batch, asks_S: np.ndarray, drafts_B: np.ndarray, drawn: Drawn
    ) -> None:
        for ahead in range(max(1, int(drafts_B.max()))):
            rows_S = step.rows_B[asks_S]
            known_S = step.rows.known[rows_S] + ahead
            if ahead:
                batch = one_each(step.rows, rows_S, known_S - 1)
            logits_RV = self.logits(batch, rows_S)
            if len(rows_S):
                tokens_S = self._tokens(logits_RV, step, rows_S, asks_S, ahead, drawn)
                step.rows.tokens[rows_S, known_S] = tokens_S
            asks_S = asks_S[drafts_B[asks_S] > ahead + 1]

    def trees(
        self, step: Step, batch: Batch, asks_S: np.ndarray, drafts_B: np.ndarray,
        parents_N: np.ndarray,
    ) -> None:  # fmt: skip
        """Grow a tree for each row, a level a pass: of what may follow a level's tokens the `width`
        likeliest, by the product of their probabilities."""
        rows = step.rows
        counts_S, row_S = drafts_B[asks_S], step.rows_B[asks_S]
        first_S, known_S = (np.cumsum(drafts_B) - drafts_B)[asks_S], rows.known[row_S]
        trees = [
            DraftTree(parents_N[n : n + count], rows.tokens[row, known:], self.width)
            for n, count, row, known in zip(
                first_S.tolist(), counts_S.tolist(), row_S.tolist(), known_S.tolist(), strict=True
            )
        ]
        which_N = np.arange(len(trees))  # of each row of logits: its tree
        while True:
            logits_RV = self.logits(batch, row_S[which_N])
            grown = [tree.grow(logits_RV[which_N == t]) for t, tree in enumerate(trees)]
            node_N = np.array([node for nodes in grown for node in nodes], np.int64)
            if not len(node_N):
                return
            which_N = np.repeat(np.arange(len(trees)), [len(nodes) for nodes in grown])
            batch = one_each(rows, row_S[which_N], (known_S[which_N] + node_N).astype(np.int32))
            where = row_S[which_N], known_S[which_N], node_N, first_S[which_N]
            see(batch, rows, *where, parents_N)
            batch.positions_T = batch.context_B - 1

    def _tokens(
        self, logits_RV: np.ndarray, step: Step, rows_S: np.ndarray, asks_S: np.ndarray,
        ahead: int, drawn: Drawn,
    ) -> np.ndarray:  # fmt: skip
        """A draft of each row, which has `ahead` of them already."""
        if step.rows.plain[rows_S].all():
            return self.sampler.greedy(logits_RV)[0]
        ahead_S = np.full(len(rows_S), ahead, np.int32)
        told = replace(step, sample_rows_S=rows_S, sample_from_S=asks_S, ahead_S=ahead_S)
        return self.sampler.draft(logits_RV, np.arange(len(rows_S)), told, drawn)

    def _shape(self, batch: Batch, rows: int) -> Shape:
        return self.work.shape(np.diff(batch.query_start_B1), batch.context_B, rows)

    def _count(self, shape: Shape) -> None:
        """A pass's work joins the step's."""
        flops, moved = self.work.work(shape)
        self.flops, self.bytes = self.flops + flops, self.bytes + moved
