"""The persistent batch: one row of numpy arrays for each running request.

Rows 0 … `count` - 1 are in use. All per-step work is done on whole columns; a row is touched from
Python only when its request starts, ends or needs a page.
"""

import numpy as np

COLUMNS = {
    "cached": np.int32,  # tokens whose keys and values lie in pages
    "known": np.int32,  # tokens known: prompt and generated
    "prompt": np.int32,  # tokens of the prompt
    "limit": np.int32,  # tokens at which it ends for length
    "floor": np.int32,  # tokens before which it may not end
    "pages": np.int32,  # pages held
    "ends": np.bool_,  # the model's end token ends it
    "watched": np.bool_,  # has stop tokens or texts of its own, or somebody counts its tokens
    "plain": np.bool_,  # greedy without penalties, biases or floors
    "padding": np.bool_,  # finished, kept until its batch ends
    "seed": np.uint64,
}


class Rows:
    """Columns of the running requests; `width` tokens and pages grow as needed."""

    def __init__(self, capacity: int, page_size: int) -> None:
        self.capacity, self.page_size, self.count = capacity, page_size, 0
        self.cached = np.zeros(capacity, np.int32)
        self.known = np.zeros(capacity, np.int32)
        self.prompt = np.zeros(capacity, np.int32)
        self.limit = np.zeros(capacity, np.int32)
        self.floor = np.zeros(capacity, np.int32)
        self.pages = np.zeros(capacity, np.int32)
        self.ends = np.zeros(capacity, np.bool_)
        self.watched = np.zeros(capacity, np.bool_)
        self.plain = np.zeros(capacity, np.bool_)
        self.padding = np.zeros(capacity, np.bool_)
        self.seed = np.zeros(capacity, np.uint64)
        self.tokens = np.zeros((capacity, 64), np.int32)
        self.tables = np.full((capacity, 64 // page_size + 1), -1, np.int32)

    def reserve(self, tokens: int) -> None:
        """Make room for rows of `tokens` tokens and their pages."""
        if tokens > self.tokens.shape[1]:
            wide = np.zeros((self.capacity, max(tokens, 2 * self.tokens.shape[1])), np.int32)
            wide[:, : self.tokens.shape[1]] = self.tokens
            self.tokens = wide
        pages = -(-self.tokens.shape[1] // self.page_size) + 1
        if pages > self.tables.shape[1]:
            wide = np.full((self.capacity, pages), -1, np.int32)
            wide[:, : self.tables.shape[1]] = self.tables
            self.tables = wide

    def move(self, source: int, target: int) -> None:
        """Put row `source` in the place of row `target`."""
        for name in COLUMNS:
            column = getattr(self, name)
            column[target] = column[source]
        self.tokens[target] = self.tokens[source]
        self.tables[target] = self.tables[source]
