"""Running requests: their rows in the persistent batch and the page operations of each."""

import numpy as np

from engine.cache.cache import Cache
from engine.cache.decode import DecodedRows
from engine.cache.turnover import Turnover
from engine.inference.accounts import Accounts
from engine.inference.requests.request import Request
from engine.inference.requests.rows import Rows
from engine.inference.requests.step import Step


def pages_for(tokens: int, page_size: int) -> int:
    """Pages that hold `tokens` tokens."""
    return -(-tokens // page_size)


class Running:
    """Rows, who sits in each, and the page operations a row needs now and then."""

    def __init__(
        self, cache: Cache, capacity: int, sharing: bool, accounts: Accounts | None = None,
        forgets_tokens: bool = False,
    ) -> None:  # fmt: skip
        self.cache, self.sharing, self.accounts = cache, sharing, accounts
        self.forgets_tokens = forgets_tokens  # wrong: rows that move leave their tokens behind
        self.rows = Rows(capacity, cache.page_size)
        self.decoded, self.turnover = DecodedRows(cache), Turnover(cache)
        self.requests: list[Request] = []  # by row
        self.names: list[str] = []  # their ids, by row
        self.masked = False  # whether any request ever had a block of masks
        self.forked = 0  # forks made of running requests; 0: no page can need a copy

    def enter(self, request: Request, limit: int, pages: np.ndarray, hits: int) -> int:
        """`request` takes a row with `pages`, of which the first `hits` are of the prefix tree."""
        rows, row = self.rows, self._seat(request, limit)
        rows.tokens[row, : len(request.tokens)] = request.tokens
        rows.tables[row] = -1
        rows.tables[row, : len(pages)] = pages
        rows.numbers[:, row], rows.flags[:, row] = self._facts(request, limit, len(pages), hits)
        rows.seed[row] = request.seed
        return row

    def enter_plain(self, request: Request, limit: int, joined: np.ndarray, fresh: int) -> int:
        """`enter` of a plain cache: behind the pages `joined`, all of the prefix tree, `request`
        takes `fresh` ones."""
        rows, row, hits = self.rows, self._seat(request, limit), len(joined)
        facts = self._facts(request, limit, hits + fresh, hits)
        given = row, request.tokens, joined, fresh, *facts, request.seed
        self.turnover.enter(rows.columns, *given)
        return row

    def _seat(self, request: Request, limit: int) -> int:
        rows, row = self.rows, self.rows.count
        rows.reserve(limit)
        rows.count += 1
        self.requests.append(request)
        self.names.append(request.id)
        request.row, rows.looked[row] = row, 0
        if request.source is not None:
            request.source.running += 1
        return row

    def leave(self, request: Request) -> int:
        """Take `request` out of its row, its pages already given up; returns the row moved in."""
        rows, row = self.rows, request.row
        request.tokens = rows.tokens[row, : rows.known[row]].copy()
        last = self._unseat(request)
        if row != last:
            rows.move(last, row, tokens=not self.forgets_tokens)
        return last

    def leave_plain(self, request: Request) -> bool:
        """`leave` of a plain cache whose pages' worth is their age: its pages join the tree and are
        given up with it. False where it has to join another's page before."""
        rows, row, last = self.rows, request.row, self.rows.count - 1
        tokens_T = rows.tokens[row, : rows.known[row]].copy()
        root = self.cache.tree.root(request.salt) if self.sharing else -1
        held, moves = int(rows.pages[row]), not self.forgets_tokens
        if not self.turnover.leave(rows.columns, held, row, last, root, self.sharing, moves):
            return False
        request.tokens = tokens_T
        self._unseat(request)
        return True

    def _unseat(self, request: Request) -> int:
        rows, row = self.rows, request.row
        rows.count -= 1
        last, moved = rows.count, self.requests.pop()
        self.names.pop()
        if row != last:
            self.requests[row], self.names[row], rows.looked[row] = moved, moved.id, 0
            moved.row = row
        request.row = -1
        if request.source is not None:
            request.source.running -= 1
        return last

    def charge(self, step: Step) -> None:
        """Count the step's tokens to their users, where accounts are kept."""
        if self.accounts is not None:
            self.accounts.charge(self.rows.user[step.rows_B], step.queries_B)

    def fork(self, parent: Request, child: Request, cached: int) -> int:
        """`child` takes a row that shares the pages of `parent` that hold its `cached` tokens.

        Pages beyond are for drafts, and each row writes its own.
        """
        rows, source = self.rows, parent.row
        self.index_full(source, int(rows.cached[source]))
        pages = rows.table(source)[: pages_for(cached, rows.page_size)].copy()
        child.tokens = rows.tokens[source, : rows.known[source]].copy()
        self.cache.share(child.id, pages)
        row = self.enter(child, int(rows.limit[source]), pages, 0)
        rows.cached[row], rows.indexed[row] = cached, rows.indexed[source]
        if self.cache.states is not None:
            rows.state[row] = self.cache.states.share(child.id, int(rows.state[source]))
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
        request, index = self.requests[row], int(rows.indexed[row])
        done, cached = coming // size, int(rows.cached[row])
        if index >= done:
            return
        table, tokens = rows.tables[row], rows.tokens[row]
        while True:
            parent = int(table[index - 1]) if index else self.cache.tree.root(request.salt)
            index, twin = self.cache.index(
                request.id, table, tokens, parent, index, done, request.group, request.shared
            )
            if twin < 0 or (index + 1) * size > cached:
                break
            self._adopt(row, index, twin)
            index += 1
        rows.indexed[row] = index

    def index_generated(self) -> None:
        """Full pages of answers join the tree, for all rows at once; called now and then."""
        rows, count = self.rows, self.rows.count
        if not self.sharing:
            return
        if self.cache.quiet:
            if self.decoded.index(rows.columns, count):
                self.index_behind()
            return
        behind = np.flatnonzero(rows.cached[:count] // rows.page_size > rows.indexed[:count])
        index = rows.indexed[behind]
        alone = self.cache.pool.references[rows.tables[behind, index]] == 1
        ready = behind[(index > 0) & alone]
        if len(ready):
            self._index_each(ready)
        self.index_behind()

    def index_behind(self) -> None:
        """Rows whose next full page is not in the tree get it there or join another's, one by
        one."""
        rows, count = self.rows, self.rows.count
        behind = rows.cached[:count] // rows.page_size > rows.indexed[:count]
        for row in np.flatnonzero(behind).tolist():
            self.index_full(row, int(rows.cached[row]))

    def _index_each(self, behind: np.ndarray) -> None:
        """The next page of each row joins the tree, unless the tree has it already."""
        rows, index = self.rows, self.rows.indexed[behind]
        done = self.cache.index_each(self.names, behind, index, rows.tables, rows.tokens)
        rows.indexed[behind[done]] += 1

    def catch_up(self, row: int) -> None:
        """Join pages that others have computed since `row` was admitted, instead of computing."""
        rows, size = self.rows, self.rows.page_size
        request, tree = self.requests[row], self.cache.tree
        index = int(rows.indexed[row])
        if not self.sharing or index * size != rows.cached[row] or not request.joins:
            return
        if self.cache.states is not None:
            return  # the pages alone would leave its state behind
        parent = int(rows.tables[row, index - 1]) if index else tree.root(request.salt)
        rest = rows.tokens[row, index * size : int(rows.known[row]) - 1]
        for twin in tree.follow(rest, parent, len(rest) // size):
            self._adopt(row, index, twin)
            index += 1
        rows.indexed[row], rows.cached[row] = index, index * size

    def _adopt(self, row: int, index: int, twin: int) -> None:
        """Row's page at `index` gives way to the tree's page with the same contents."""
        rows, owner, start = self.rows, self.names[row], index * self.rows.page_size
        own = rows.tables[row, index : index + 1].copy()
        self.cache.hit(owner, [twin], start)
        self.cache.drop(owner, own, start)
        rows.tables[row, index] = twin

    def _facts(
        self, request: Request, limit: int, pages: int, hits: int
    ) -> tuple[tuple[int, ...], tuple[bool, ...]]:
        """All columns of its row: one by one they would cost more than the rest of it."""
        rows, wish, prompt = self.rows, request.sampling, len(request.prompt)
        known, size = len(request.tokens), rows.page_size
        user = self.accounts.slot(request.user) if self.accounts is not None else 0
        due, floor = 0 if request.watched else limit, prompt + wish.min_tokens
        numbers = (
            max(request.computed, hits * size), known, prompt, limit, floor, pages, pages * size,
            hits, -1, user, due,
        )  # fmt: skip
        steered = wish.guidance != 1.0 and request.canvas is None  # a block's text steers itself
        rows.steers = rows.steers or steered
        guided = request.guide is not None or steered
        easy = wish.temperature == 0 and not (wish.min_tokens or wish.logprobs)
        plain = easy and not guided and wish.bare
        return numbers, (not wish.ignore_eos, plain, guided, False, steered)
