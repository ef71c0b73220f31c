"""Persistent batch: for each running request one row of tokens, counters and its block table.

Rows 0 … `count` - 1 are in use. All per-step work is done on whole columns; a row is touched from
Python only when its request starts, ends or needs a page.
"""

import numpy as np

from engine.kernels.columns import addresses
from engine.kernels.paged_rows import Batch

START_TOKENS = 256  # width of a row before any request needs more
WIDER = 1.25  # times as wide at least, if one does: those in use are copied then
NUMBERS = (
    "cached", "known", "prompt", "limit", "floor", "pages", "filled", "indexed", "state", "user",
    "due",
)  # fmt: skip
FLAGS = ("ends", "plain", "guided", "padding", "steered")


class Rows:
    """Columns of the running requests. Token and page columns grow as requests need."""

    def __init__(self, capacity: int, page_size: int) -> None:
        self.capacity, self.page_size, self.count = capacity, page_size, 0
        # One array for all columns of a type: a row that moves is one copy of each.
        self.numbers = np.zeros((len(NUMBERS), capacity), np.int32)
        self.flags = np.zeros((len(FLAGS), capacity), np.bool_)
        self.cached: np.ndarray  # tokens whose keys and values lie in pages
        self.known: np.ndarray  # tokens known: prompt and generated
        self.prompt: np.ndarray  # tokens of the prompt
        self.limit: np.ndarray  # tokens at which it ends for length
        self.floor: np.ndarray  # tokens up to which it may not end
        self.pages: np.ndarray  # pages held
        self.filled: np.ndarray  # tokens the held pages have room for
        self.indexed: np.ndarray  # leading pages that are in the prefix tree
        self.state: np.ndarray  # page of its recurrent state; -1: none yet
        self.user: np.ndarray
        self.due: np.ndarray  # tokens at which to look at it: its limit, or 0
        self.ends: np.ndarray  # the model's end token ends it
        self.plain: np.ndarray  # likeliest token, nothing added or forbidden
        self.guided: np.ndarray  # what it may say depends on what it says next
        self.padding: np.ndarray  # over, kept until its batch ends
        self.steered: np.ndarray  # a second row of it steers what it says (guidance)
        for name, column in zip((*NUMBERS, *FLAGS), (*self.numbers, *self.flags), strict=True):
            setattr(self, name, column)
        self.steers = False  # whether any row ever was
        self.seed = np.zeros(capacity, np.uint64)  # its draws depend on this and the position
        self.tokens = np.zeros((capacity, START_TOKENS), np.int32)
        self.flat = self.tokens.reshape(-1)  # the same memory
        self.tables = np.full((capacity, -(-START_TOKENS // page_size)), -1, np.int32)
        self.columns = addresses(self._batch())  # a table of them, for kernels

    def reserve(self, tokens: int) -> None:
        """Make room for rows of `tokens` tokens and their pages."""
        if tokens <= self.tokens.shape[1]:
            return
        width = max(tokens, int(WIDER * self.tokens.shape[1]))
        # Drafts lie behind what is known, in pages that are there.
        used = self.known[: self.count], self.filled[: self.count]
        most = max(int(column.max(initial=0)) for column in used)
        self.tokens = _widened(self.tokens[:, :most], width, 0, self.count)
        self.flat = self.tokens.reshape(-1)
        self.tables = _widened(self.tables, -(-width // self.page_size), -1, self.count)
        self.columns = addresses(self._batch())

    def move(self, source: int, target: int, tokens: bool = True) -> None:
        """Put row `source` in the place of row `target`; without its `tokens` it says nonsense."""
        for columns in (self.numbers, self.flags):
            columns[:, target] = columns[:, source]
        self.seed[target] = self.seed[source]
        if tokens:
            known = self.known[source]
            self.tokens[target, :known] = self.tokens[source, :known]
        self.tables[target] = self.tables[source]
        self.tables[source] = -1

    def _batch(self) -> Batch:
        return Batch(
            self.tables, self.tokens, self.seed, self.known, self.cached, self.filled, self.pages,
            self.indexed, self.due, self.floor, self.ends, self.numbers, self.flags,
        )  # fmt: skip

    def table(self, row: int) -> np.ndarray:
        """The pages of a row, in order."""
        return self.tables[row, : self.pages[row]]


def _widened(old: np.ndarray, width: int, fill: int, used: int) -> np.ndarray:
    """The first `used` rows are kept, `fill` after what they have; others are written when they
    come into use."""
    # Zeros are not touched before they are written: wide rows cost memory only where used.
    wide = np.zeros((old.shape[0], width), old.dtype)
    wide[:used, : old.shape[1]] = old[:used]
    wide[:used, old.shape[1] :] = fill
    return wide
