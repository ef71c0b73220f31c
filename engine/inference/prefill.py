"""Chunked prefill: computes prompts in chunks, within the tokens that a step has left for them."""

from collections.abc import Callable
from dataclasses import dataclass, field

from engine.cache.host_swap import HostSwap
from engine.inference.policies.policy import Mix
from engine.inference.requests.request import Request
from engine.inference.running import Running

SCORED = 3  # tokens of a prompt that take as long as one that is scored against the vocabulary


@dataclass(slots=True)
class Chunks:
    """Chunks of one step: rows and how many tokens of each; `left` is what still fits."""

    left: int = 0
    whole: bool = False
    only: int = -1
    rows: list[int] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    canvases: list[int] = field(default_factory=list)  # which of them are whole texts with masks


class Prefill:
    """Running requests whose known tokens are not all computed, in order of entering."""

    def __init__(self, running: Running, host: HostSwap) -> None:
        """`host`: whose requests wait here until their pages have come back."""
        self.running, self.host = running, host
        self.pending: dict[Request, None] = {}
        self.chunks = Chunks()

    def __len__(self) -> int:
        return len(self.pending)

    def begin(self, mix: Mix) -> Chunks:
        """Start a step's chunks."""
        self.chunks = Chunks(mix.prefill_tokens, mix.whole_prompts, mix.only)
        return self.chunks

    def go_on(self, chunks: Chunks) -> None:
        """Chunks for those who have begun."""
        for request in self.pending:
            if chunks.left <= 0:
                return
            if self._able(request, chunks):
                self._cut_on(request, chunks)

    def share(self, chunks: Chunks, admit: Callable[[], None]) -> None:
        """Chunks in thirds: for whoever `admit` lets in, for who has least left to compute, and
        for who began first. What one third does not need, the next has.

        A short prompt waits for no long one, and the longest goes on at a third of its speed.
        """
        begun = [one for one in self.pending if self._able(one, chunks)]
        if not begun or chunks.whole or self.running.masked:  # what is never cut has no share
            self.go_on(chunks)
            admit()
            return
        left = {one: self._left(one) for one in begun}
        third, shortest = -(-chunks.left // 3), sorted(begun[1:], key=left.__getitem__)
        of_first = min(third, left[begun[0]])
        of_shortest = min(third, sum(left[one] for one in shortest))
        chunks.left -= of_first + of_shortest
        if chunks.left > 0:
            admit()
        chunks.left += of_shortest
        for one in (*shortest, begun[0]):
            if one is begun[0]:
                chunks.left += of_first
            if chunks.left > 0:
                self._cut_on(one, chunks)

    def _able(self, request: Request, chunks: Chunks) -> bool:
        return chunks.only in (-1, request.row) and self._there(request)

    def _left(self, request: Request) -> int:
        """Tokens of it that are still to compute, as a step's tokens are counted."""
        rows, row = self.running.rows, request.row
        return _weight(request) * int(rows.known[row] - rows.cached[row])

    def _cut_on(self, request: Request, chunks: Chunks) -> None:
        self.running.catch_up(request.row)
        self.cut(request, chunks)

    def enter(self, request: Request, chunks: Chunks) -> None:
        """`request` has just been admitted: its first chunk, if there is room."""
        self.pending[request] = None
        if request.id not in self.host.landing:
            self.cut(request, chunks)

    def wait(self, mixes: tuple[Mix, ...]) -> bool:
        """Let a step for which there is no other work wait for whoever's pages come next, and
        compute of it what the first of `mixes` that may; whether there is one."""
        landing = self.host.landing
        waiting = [request for request in self.pending if request.id in landing]
        able = [mix for mix in mixes if mix.prefill_tokens > 0]
        if not waiting or not able:
            return False
        first = min(waiting, key=lambda request: landing[request.id])
        self.host.wait_for(first.id)
        self.cut(first, self.begin(able[0]))
        return True

    def cut(self, request: Request, chunks: Chunks) -> None:
        """Its next chunk: what is left of the prompt, or of the step, then up to a whole page.

        A text with masks is computed whole, each step anew; the first of a step may exceed it.
        """
        rows, row, size = self.running.rows, request.row, self.running.rows.page_size
        start = int(rows.cached[row])
        length, weight = int(rows.known[row]) - start, _weight(request)
        room = -(-chunks.left // weight)
        masked, cuts = request.canvas is not None, length > room and not chunks.whole
        if masked and cuts and chunks.rows:
            return
        if masked:
            chunks.canvases.append(len(chunks.rows))
        elif cuts:
            stop = start + room
            # Chunks end with pages where they can, so that others can join what is computed.
            length = (stop - stop % size if stop - stop % size > start else stop) - start
        chunks.left -= weight * length
        chunks.rows.append(row)
        chunks.queries.append(length)
        if not masked:
            self.running.index_full(row, start + length)

    def done(self, request: Request) -> None:
        """Nothing of it is left to compute, or it left."""
        self.pending.pop(request, None)
        self.host.leaves(request.id)

    def _there(self, request: Request) -> bool:
        """Whether its pages have come back, where they lay on the host."""
        landing = self.host.landing
        if not landing or request.id not in landing:
            return True
        there = landing[request.id] <= self.running.cache.clock.now()
        if there:
            self.host.arrived(request.id)
        return there


def _weight(request: Request) -> int:
    """Tokens of a step that one of its prompt counts as."""
    return SCORED if request.prompt_tops >= 0 else 1
