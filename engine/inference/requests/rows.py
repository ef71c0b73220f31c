"""Persistent batch: for each running request one row of tokens, counters and its block table.

Rows 0 … `count` - 1 are in use. All per-step work is done on whole columns; a row is touched from
Python only when its request starts, ends or needs a page.
"""

import numpy as np

from engine.core.memory import demand_zeros
from engine.kernels.columns import addresses
from engine.kernels.paged_rows import Batch

# Before more run, or any request needs more: what nobody writes takes no memory. No power of two,
# or tokens of all rows would share a few lines of a processor's caches.
START_ROWS, START_TOKENS = 128, 8192 + 16
MORE = 2  # times as many rows, or tokens of each, where they do: what is in use is copied then
NUMBERS = (
    "cached", "known", "prompt", "limit", "floor", "pages", "filled", "indexed", "state", "user",
    "due",
)  # fmt: skip
FLAGS = ("ends", "plain", "guided", "padding", "steered")


class Rows:
    """Columns of the running requests. Those of tokens and pages grow as requests need."""

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
        self.looked = np.zeros(capacity, np.int32)  # tokens of it whose n-grams are kept
        self.seed = np.zeros(capacity, np.uint64)  # its draws depend on this and the position
        rows = min(capacity, START_ROWS)
        self.tokens = demand_zeros((rows, START_TOKENS), np.int32)
        self.flat = self.tokens.reshape(-1)  # the same memory
        self.tables = demand_zeros((rows, -(-START_TOKENS // page_size)), np.int32)
        self.columns = addresses(self._batch())  # a table of them, for kernels

    def reserve(self, tokens: int) -> None:
        """Make room for one more row, and for rows of `tokens` tokens and their pages."""
        old, tables, count = self.tokens, self.tables, self.count
        rows, width = old.shape
        if tokens <= width and count < rows:
            return
        if count == rows:
            rows = min(self.capacity, MORE * rows)
        if tokens > width:
            width = max(tokens, MORE * width)
        self.tokens = demand_zeros((rows, width), np.int32)
        self.flat = self.tokens.reshape(-1)
        # Drafts lie behind what is known, in pages that are there.
        used_R = np.maximum(self.known[:count], self.filled[:count])
        for row, used in enumerate(np.minimum(used_R, old.shape[1]).tolist()):
            self.tokens[row, :used] = old[row, :used]
        # Rows that are not in use are written when they come into it.
        self.tables = demand_zeros((rows, -(-width // self.page_size)), np.int32)
        self.tables[:count, : tables.shape[1]] = tables[:count]
        self.tables[:count, tables.shape[1] :] = -1
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
