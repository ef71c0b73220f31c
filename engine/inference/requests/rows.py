"""Persistent batch: for each running request one row of tokens, counters and its block table.

Rows 0 … `count` - 1 are in use. All per-step work is done on whole columns; a row is touched from
Python only when its request starts, ends or needs a page.
"""

import numpy as np

START_TOKENS = 256  # width of a row before any request needs more


class Rows:
    """Columns of the running requests. Token and page columns grow as requests need."""

    def __init__(self, capacity: int, page_size: int) -> None:
        self.capacity, self.page_size, self.count = capacity, page_size, 0
        self.cached = np.zeros(capacity, np.int32)  # tokens whose keys and values lie in pages
        self.known = np.zeros(capacity, np.int32)  # tokens known: prompt and generated
        self.prompt = np.zeros(capacity, np.int32)  # tokens of the prompt
        self.limit = np.zeros(capacity, np.int32)  # tokens at which it ends for length
        self.floor = np.zeros(capacity, np.int32)  # tokens up to which it may not end
        self.pages = np.zeros(capacity, np.int32)  # pages held
        self.filled = np.zeros(capacity, np.int32)  # tokens the held pages have room for
        self.indexed = np.zeros(capacity, np.int32)  # leading pages that are in the prefix tree
        self.user = np.zeros(capacity, np.int32)
        self.ends = np.zeros(capacity, np.bool_)  # the model's end token ends it
        self.due = np.zeros(capacity, np.int32)  # tokens at which to look at it: its limit, or 0
        self.plain = np.zeros(capacity, np.bool_)  # likeliest token, nothing added or forbidden
        self.guided = np.zeros(capacity, np.bool_)  # what it may say depends on what it says next
        self.seed = np.zeros(capacity, np.uint64)  # its draws depend on this and the position
        self.padding = np.zeros(capacity, np.bool_)  # over, kept until its batch ends
        self.tokens = np.zeros((capacity, START_TOKENS), np.int32)
        self.flat = self.tokens.reshape(-1)  # the same memory
        self.tables = np.full((capacity, -(-START_TOKENS // page_size)), -1, np.int32)

    def reserve(self, tokens: int) -> None:
        """Make room for rows of `tokens` tokens and their pages."""
        if tokens <= self.tokens.shape[1]:
            return
        width = max(tokens, 2 * self.tokens.shape[1])
        self.tokens = _widened(self.tokens, width, 0)
        self.flat = self.tokens.reshape(-1)
        self.tables = _widened(self.tables, -(-width // self.page_size), -1)

    def move(self, source: int, target: int, tokens: bool = True) -> None:
        """Put row `source` in the place of row `target`; without its `tokens` it says nonsense."""
        for column in self._columns:
            if tokens or column is not self.tokens:
                column[target] = column[source]
        self.tables[source] = -1

    def table(self, row: int) -> np.ndarray:
        """The pages of a row, in order."""
        return self.tables[row, : self.pages[row]]

    @property
    def _columns(self) -> list[np.ndarray]:
        found = [c for c in vars(self).values() if isinstance(c, np.ndarray)]
        return [column for column in found if column is not self.flat]


def _widened(old: np.ndarray, width: int, fill: int) -> np.ndarray:
    # Zeros are not touched before they are written: wide rows cost memory only where used.
    wide = np.zeros((old.shape[0], width), old.dtype)
    if fill:
        wide[:] = fill
    wide[:, : old.shape[1]] = old
    return wide
