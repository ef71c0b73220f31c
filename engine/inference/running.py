"""Running requests: their rows in the persistent batch and the page operations of each."""

import numpy as np

from engine.cache.cache import Cache
from engine.inference.requests.request import Request
from engine.inference.requests.rows import Rows


def pages_for(tokens: int, page_size: int) -> int:
    """Pages that hold `tokens` tokens."""
    return -(-tokens // page_size)


class Running:
    """Rows, who sits in each, and the page operations a row needs now and then."""

    def __init__(
        self, cache: Cache, capacity: int, sharing: bool, accounts: bool = False,
        forgets_tokens: bool = False,
    ) -> None:  # fmt: skip
        self.cache, self.sharing, self.accounts = cache, sharing, accounts
        self.forgets_tokens = forgets_tokens  # wrong: rows that move leave their tokens behind
        self.rows = Rows(capacity, cache.page_size)
        self.requests: list[Request] = []  # by row
        self.names: list[str] = []  # their ids, by row
        self.in_page = np.arange(cache.page_size)
        self.users: dict[str, int] = {}  # numbers of users, where accounts are kept
        self.forked = 0  # forks made of running requests; 0: no page can need a copy

    def enter(self, request: Request, limit: int, pages: np.ndarray, hits: int) -> int:
        """`request` takes a row with `pages`, of which the first `hits` are of the prefix tree."""
        rows, row, known = self.rows, self.rows.count, len(request.tokens)
        rows.reserve(limit)
        rows.count += 1
        rows.tokens[row, :known] = request.tokens
        rows.known[row], rows.prompt[row], rows.limit[row] = known, len(request.prompt), limit
        rows.cached[row] = max(request.computed, hits * rows.page_size)
        rows.indexed[row] = hits
        rows.padding[row] = False
        self._describe(row, request)
        self._set_pages(row, pages)
        self.requests.append(request)
        self.names.append(request.id)
        request.row = row
        return row

    def leave(self, request: Request) -> int:
        """Take `request` out of its row, its pages already given up; returns the row moved in."""
        rows, row = self.rows, request.row
        request.tokens = rows.tokens[row, : rows.known[row]].copy()
        rows.count -= 1
        last = rows.count
        moved = self.requests.pop()
        self.names.pop()
        if row != last:
            rows.move(last, row, tokens=not self.forgets_tokens)
            self.requests[row], self.names[row] = moved, moved.id
            moved.row = row
        request.row = -1
        return last

    def fork(self, parent: Request, child: Request, cached: int) -> int:
        """`child` takes a row that shares every page of `parent`, `cached` tokens filled."""
        rows, source = self.rows, parent.row
        self.index_full(source, int(rows.cached[source]))
        pages = rows.table(source).copy()
        child.tokens = rows.tokens[source, : rows.known[source]].copy()
        self.cache.share(child.id, pages)
        row = self.enter(child, int(rows.limit[source]), pages, 0)
        rows.cached[row], rows.indexed[row] = cached, rows.indexed[source]
        self.forked += 1
        return row

    def index_full(self, row: int, coming: int) -> None:
        """Put full pages of `row` into the prefix tree, `coming` tokens counting as cached.

        Where the tree already has a page with the same contents, the row joins that one instead;
        a page still to be written in this step waits for that until it has been.
        """
        rows, size = self.rows, self.rows.page_size
        if not self.sharing:
            return
        request, tree = self.requests[row], self.cache.tree
        references = self.cache.pool.references
        index, done, cached = int(rows.indexed[row]), coming // size, int(rows.cached[row])
        parent = int(rows.tables[row, index - 1]) if index else tree.root(request.salt)
        while index < done:
            start = index * size
            data = rows.tokens[row, start : start + size].tobytes()
            page, twin = int(rows.tables[row, index]), tree.child(parent, data)
            if twin < 0:
                if references[page] > 1:
                    break  # a fork holds it too, perhaps with other pages above it
                group = request.group if start + size <= request.shared else -1
                self.cache.index(request.id, page, parent, data, start, group)
            elif twin != page:
                if start + size > cached:
                    break
                self._adopt(row, index, twin)
            parent = page if twin < 0 else twin
            index += 1
        rows.indexed[row] = index

    def index_generated(self) -> None:
        """Full pages of answers join the tree, for all rows at once; called now and then."""
        rows, count = self.rows, self.rows.count
        if not self.sharing:
            return
        behind = np.flatnonzero(rows.cached[:count] // rows.page_size > rows.indexed[:count])
        index = rows.indexed[behind]
        alone = self.cache.pool.references[rows.tables[behind, index]] == 1
        ready = behind[(index > 0) & alone]
        if len(ready):
            self._index_each(ready)
        for row in behind[rows.cached[behind] // rows.page_size > rows.indexed[behind]].tolist():
            self.index_full(row, int(rows.cached[row]))

    def _index_each(self, behind: np.ndarray) -> None:
        """The next page of each row joins the tree, unless the tree has it already."""
        rows, size, index = self.rows, self.rows.page_size, self.rows.indexed[behind]
        starts = index * size
        tokens = rows.tokens[behind[:, None], starts[:, None] + self.in_page]
        pages, parents = rows.tables[behind, index], rows.tables[behind, index - 1]
        twins = self.cache.index_each(
            self.names, behind.tolist(), pages, parents, tokens.tobytes(), starts.tolist()
        )
        rows.indexed[behind] = index + 1
        rows.indexed[behind[twins]] -= 1

    def catch_up(self, row: int) -> None:
        """Join pages that others have computed since `row` was admitted, instead of computing."""
        rows, size = self.rows, self.rows.page_size
        request, tree = self.requests[row], self.cache.tree
        index = int(rows.indexed[row])
        if not self.sharing or index * size != rows.cached[row] or request.prompt_tops >= 0:
            return
        parent = int(rows.tables[row, index - 1]) if index else tree.root(request.salt)
        while (index + 1) * size < rows.known[row]:
            data = rows.tokens[row, index * size : (index + 1) * size].tobytes()
            twin = tree.child(parent, data)
            if twin < 0:
                break
            self._adopt(row, index, twin)
            parent, index = twin, index + 1
        rows.indexed[row], rows.cached[row] = index, index * size

    def _adopt(self, row: int, index: int, twin: int) -> None:
        """Row's page at `index` gives way to the tree's page with the same contents."""
        rows, owner, start = self.rows, self.names[row], index * self.rows.page_size
        own = rows.tables[row, index : index + 1].copy()
        self.cache.hit(owner, [twin], start)
        self.cache.drop(owner, own, start)
        rows.tables[row, index] = twin

    def _set_pages(self, row: int, pages: np.ndarray) -> None:
        rows = self.rows
        rows.tables[row] = -1
        rows.tables[row, : len(pages)] = pages
        rows.pages[row] = len(pages)
        rows.filled[row] = len(pages) * rows.page_size

    def _describe(self, row: int, request: Request) -> None:
        rows, wish = self.rows, request.sampling
        rows.floor[row] = len(request.prompt) + wish.min_tokens
        rows.seed[row] = request.seed
        rows.guided[row] = request.guide is not None
        if self.accounts:
            rows.user[row] = self.users.setdefault(request.user, len(self.users))
        rows.ends[row] = not wish.ignore_eos
        rows.due[row] = 0 if request.watched else rows.limit[row]
        rows.plain[row] = (
            wish.temperature == 0
            and wish.repetition_penalty == 1
            and not (wish.presence_penalty or wish.frequency_penalty)
            and not (wish.logit_bias or wish.min_tokens or wish.logprobs)
            and request.guide is None
        )
