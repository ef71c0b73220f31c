"""Batch: new tokens of several sequences as the arrays that one forward pass reads.

Shape letters: T new tokens, B sequences, P pages of the longest sequence, R wanted logits,
C hidden. Of views: N (sequence, block) pairs, K blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

Held: TypeAlias = Sequence[int] | np.ndarray  # pages of a sequence


@dataclass(slots=True)
class Views:
    """What each sequence sees before its own block. All arrays are numpy int32.

    The batch's own fields describe each sequence's own block, which stands last in its view.
    """

    first_B1: np.ndarray  # pairs of sequence b: first_B1[b] … first_B1[b + 1]
    block_N: np.ndarray  # which block, a row of table_KP
    seen_N: np.ndarray  # its first so many tokens are visible
    shift_N: np.ndarray  # how far before the sequence's own block it begins, at least 0
    table_KP: np.ndarray  # page numbers of each block, padded with -1


class States(NamedTuple):
    """Where recurrent states lie: state pages, numpy int32.

    Whatever a batch writes, it has read before.
    """

    read_B: np.ndarray  # what each sequence begins with; -1: nothing, it begins with zeros
    write_B: np.ndarray  # where the state after its last new token goes; -1: nowhere
    keep_N3: np.ndarray  # (sequence, after so many of its new tokens, page), before its last one


@dataclass(slots=True)
class Batch:
    """New tokens of B sequences laid end to end. All arrays are numpy int32."""

    tokens_T: np.ndarray  # -1 - n: none, the row enters as vectors_NC[n]
    positions_T: np.ndarray
    slots_T: np.ndarray  # where each new token's key goes: page * page_size + offset
    query_start_B1: np.ndarray  # [B + 1] offsets of each sequence's new tokens in T
    context_B: np.ndarray  # tokens visible to the last new token of each sequence, itself included
    block_table_BP: np.ndarray  # page numbers, padded with -1
    logits_at_R: np.ndarray  # indices into T whose logits are wanted
    views: Views | None = None  # blocks that sequences see before the one they write to
    paths_T: np.ndarray | None = None  # each token's path of thought from 1 on, 0 for none
    states: States | None = None  # where layers keep a recurrent state
    by_slot: bool = False  # block tables name slots: every token is a page of its own
    vectors_NC: np.ndarray | None = None  # float32: rows that are given, not looked up

    def given(self) -> tuple[np.ndarray, np.ndarray]:
        """Which rows enter as vectors (at_N, int64), and as which, [N, C]."""
        assert self.vectors_NC is not None
        at_N = np.flatnonzero(self.tokens_T < 0)
        return at_N, self.vectors_NC[-1 - self.tokens_T[at_N]]


def in_slots(table_BP: np.ndarray, page_size: int) -> np.ndarray:
    """A block table of pages as one of slots, padded with -1."""
    slots_BPS = table_BP[:, :, None] * page_size + np.arange(page_size, dtype=np.int32)
    slots_BPS[table_BP < 0] = -1
    return slots_BPS.reshape(len(table_BP), -1)


def block_table(pages: Sequence[Held]) -> np.ndarray:
    """table_BP of each sequence's pages, padded with -1."""
    table_BP = np.full((len(pages), max(map(len, pages))), -1, np.int32)
    for row, held in zip(table_BP, pages, strict=True):
        row[: len(held)] = held
    return table_BP


NOTHING_KEPT = np.zeros((0, 3), np.int32)


def pack(
    chunks: list[list[int]], starts: list[int], pages: list[list[int]], page_size: int
) -> Batch:
    """A batch that feeds `chunks[b]` at positions `starts[b]…` of a sequence holding `pages[b]`.

    Logits are wanted at the last new token of each sequence. Sequence b keeps its recurrent state,
    if it has one, in state page b.
    """
    lengths = np.array([len(chunk) for chunk in chunks], np.int32)
    starts_B = np.array(starts, np.int32)
    query_start_B1 = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    table = block_table(pages)
    sequence_T = np.repeat(np.arange(len(chunks)), lengths)
    offsets_T = np.arange(lengths.sum()) - query_start_B1[sequence_T]
    positions_T = (starts_B[sequence_T] + offsets_T).astype(np.int32)
    page_T = table[sequence_T, positions_T // page_size]
    return Batch(
        tokens_T=np.concatenate([np.asarray(chunk, np.int32) for chunk in chunks]),
        positions_T=positions_T,
        slots_T=(page_T * page_size + positions_T % page_size).astype(np.int32),
        query_start_B1=query_start_B1,
        context_B=starts_B + lengths,
        block_table_BP=table,
        logits_at_R=query_start_B1[1:] - 1,
        states=own_states(starts_B),
    )


def both_ways(
    tokens_T: np.ndarray, starts_B: np.ndarray, counts_B: np.ndarray, contexts_B: np.ndarray,
    pages: Sequence[Held], page_size: int, logits_at_R: np.ndarray,
    vectors_NC: np.ndarray | None = None,
) -> Batch:  # fmt: skip
    """A batch in which each of `counts_B[b]` new tokens from position `starts_B[b]` on, the last
    that a sequence has, sees all its `contexts_B[b]`: for attention it is a sequence by itself."""
    table_BP = block_table(pages)
    which_T = np.repeat(np.arange(len(counts_B)), counts_B)
    offset_T = np.arange(len(which_T)) - (np.cumsum(counts_B) - counts_B)[which_T]
    at_T = (contexts_B - counts_B)[which_T] + offset_T
    slots_T = table_BP[which_T, at_T // page_size] * page_size + at_T % page_size
    return Batch(
        tokens_T=tokens_T.astype(np.int32),
        positions_T=(starts_B[which_T] + offset_T).astype(np.int32),
        slots_T=slots_T.astype(np.int32),
        query_start_B1=np.arange(len(which_T) + 1, dtype=np.int32),
        context_B=contexts_B[which_T].astype(np.int32),
        block_table_BP=table_BP[which_T],
        logits_at_R=logits_at_R.astype(np.int32),
        vectors_NC=vectors_NC,
    )


def own_states(starts_B: np.ndarray) -> States:
    """Sequence b has state page b, which is empty where it starts at 0."""
    page_B = np.arange(len(starts_B), dtype=np.int32)
    return States(np.where(starts_B == 0, -1, page_B).astype(np.int32), page_B, NOTHING_KEPT)
