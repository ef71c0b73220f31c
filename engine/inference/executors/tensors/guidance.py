"""Classifier-free guidance: logits of a request's two rows made into those it is sampled from.

The second row, with the negative prompt, has keys and values of its own under the block table of
the first (Ho & Salimans, arXiv 2207.12598; of language models Sanchez et al., arXiv 2306.17806).
Shape letters: R rows of logits, S samples, X of them guided, V vocabulary.
"""

from itertools import pairwise

import numpy as np

from engine.cache.tensors import Storage
from engine.inference.requests.negative_prompt import NegativeRows, Negatives
from engine.inference.requests.rows import Rows
from engine.inference.requests.step import Step
from engine.models.batch import Batch
from engine.models.model import Model


class Guidance:
    """Negative rows of a model over a second paged cache, made once something is guided."""

    def __init__(self, model: Model, room: tuple[int, int, int]) -> None:
        """`room`: pages, tokens of a page, host pages."""
        self.model, self.room = model, room
        self.rows = NegativeRows()
        self.storage: Storage | None = None

    def steer(self, step: Step, logits_RV: np.ndarray, from_S: np.ndarray) -> None:
        """Put guided logits in place of those of guided samples: negative + guidance × (own -
        negative). Every step comes by, since pages move."""
        if self.storage is not None:
            self.storage.swap_out(step.moves.swap_out)
            self.storage.copy(step.moves.copies)
            self.storage.swap_in(step.moves.swap_in)
        found = self.rows.of(step)
        if found is None:
            return
        if self.storage is None:
            self.storage = Storage(self.model.spec, *self.room, self.model.device)
        batch = _batch(step.rows, found)
        negative_XV = self.model.forward(batch, self.storage.kv).cpu().numpy()
        for x, (s, row) in enumerate(
            zip(found.samples_X.tolist(), found.rows_X.tolist(), strict=True)
        ):
            own_V, weight = logits_RV[from_S[s]], step.requests[row].sampling.guidance
            logits_RV[from_S[s]] = negative_XV[x] + weight * (own_V - negative_XV[x])


def _batch(rows: Rows, found: Negatives) -> Batch:
    """The new tokens of negative rows, with logits after the last of each."""
    size = rows.page_size
    lengths = found.ends_X - found.starts_X
    start_X1 = np.append(0, np.cumsum(lengths)).astype(np.int32)
    tables_XP = rows.tables[found.rows_X, : -(-int(found.ends_X.max()) // size)]
    sequence_T = np.repeat(np.arange(len(lengths)), lengths)
    positions = [np.arange(a, b) for a, b in zip(found.starts_X, found.ends_X, strict=True)]
    positions_T = np.concatenate(positions).astype(np.int32)
    slots_T = tables_XP[sequence_T, positions_T // size] * size + positions_T % size
    return Batch(
        tokens_T=np.concatenate(found.tokens),
        positions_T=positions_T,
        slots_T=slots_T.astype(np.int32),
        query_start_B1=start_X1,
        context_B=found.ends_X,
        block_table_BP=tables_XP,
        logits_at_R=np.array([stop - 1 for _, stop in pairwise(start_X1)], np.int32),
    )
