"""Recurrent states of running requests: which state page each reads and writes in a step, where a
prefix's state is kept, and the moves to and from the host.

A state can be joined only where one was kept: at the last whole page of a prompt, and where a
prompt leaves a prefix that the tree knows (Marconi, arXiv 2411.19379, section 4.1).

A state cannot forget, so what a row keeps of a pass that verifies drafts is the state before the
first of them. Rolling back then takes no state more and no copy; its price is that the drafts that
held are fed again, without logits, at the head of the row's next pass.
"""

from collections.abc import Callable

import numpy as np

from engine.cache.states import NONE, StatePages
from engine.core.clock import Clock
from engine.core.errors import BadInput
from engine.core.events import AnyEvent
from engine.inference.config import InferenceConfig
from engine.inference.executors.executor import Facts
from engine.inference.requests.request import Request
from engine.inference.requests.step import NO_PAIRS
from engine.inference.running import Running
from engine.models.batch import NOTHING_KEPT, States


class StateAllocator:
    """Plans the states of each step. Without state pages it does nothing."""

    def __init__(self, running: Running) -> None:
        self.running, self.rows, self.cache = running, running.rows, running.cache
        self.out: list[tuple[int, int]] = []
        self.back: list[tuple[int, int]] = []

    def enter(self, request: Request, tree_page: int) -> None:
        """`request` has its row and joined the tree's pages up to `tree_page` (-1: none)."""
        states, row = self.cache.states, request.row
        if states is None:
            return
        if request.host_state >= 0:
            self.back.append((request.host_state, states.swap_in(request.id, request.host_state)))
            self.rows.state[row] = self.back[-1][1]
            request.host_state = NONE
        elif tree_page >= 0:
            self.rows.state[row] = states.hit(request.id, tree_page)

    def can_swap(self) -> bool:
        """Whether the host has room for a state, where there are any."""
        states = self.cache.states
        return states is None or states.host.free > 0

    def leave(self, request: Request, to_host: bool = False) -> None:
        """`request` is about to leave its row; its state goes with its pages."""
        states, page = self.cache.states, int(self.rows.state[request.row])
        if states is None or page < 0:
            return
        if to_host:
            request.host_state = states.swap_out(request.id, page)
            self.out.append((page, request.host_state))
        else:
            states.drop(request.id, page)
        self.rows.state[request.row] = NONE

    def forget(self, request: Request) -> None:
        """`request` will not come back from the host."""
        if self.cache.states is not None and request.host_state >= 0:
            self.cache.states.drop_host(request.host_state)
            request.host_state = NONE

    def plan(
        self, rows_B: np.ndarray, starts_B: np.ndarray, queries_B: np.ndarray, decodes: int
    ) -> States | None:
        """What each sequence of a step reads and writes; the first `decodes` have one token."""
        states, rows = self.cache.states, self.rows
        if states is None:
            return None
        states.step = self.cache.step
        read_B = rows.state[rows_B]
        alone_B = states.pool.references[read_B] == 1
        alone_B[read_B < 0] = False
        kept: list[tuple[int, int, int]] = []
        for b in np.flatnonzero(~alone_B | (np.arange(len(rows_B)) >= decodes)).tolist():
            row, start = int(rows_B[b]), int(starts_B[b])
            stop = start + int(queries_B[b])
            page = states.own(self.running.names[row], int(rows.state[row]), stop)
            rows.state[row] = page
            for at in self._ends(row) if b >= decodes else ():
                if start < at <= stop:
                    kept += self._keep(b, row, at, start, page if at == stop else NONE)
        keep_N3 = np.array(kept, np.int32) if kept else NOTHING_KEPT
        return States(read_B, rows.state[rows_B], keep_N3)

    @staticmethod
    def before_drafts(states: States, queries_B: np.ndarray, drafts_B: np.ndarray) -> States:
        """The same where the last `drafts_B` of each sequence's new tokens may be refused: what is
        written is the state before them."""
        some_N = np.flatnonzero(drafts_B)
        known_N = (queries_B - drafts_B)[some_N]
        held_N3 = np.stack([some_N, known_N, states.write_B[some_N]], axis=1).astype(np.int32)
        write_B = np.where(drafts_B > 0, NONE, states.write_B).astype(np.int32)
        return States(states.read_B, write_B, np.concatenate([states.keep_N3, held_N3]))

    def movements(self) -> tuple[np.ndarray, np.ndarray]:
        """(state page, host page) and (host page, state page) pairs since the last call."""
        out, back = (np.array(p, np.int32) if p else NO_PAIRS for p in (self.out, self.back))
        self.out, self.back = [], []
        return out, back

    def _ends(self, row: int) -> list[int]:
        """Tokens after which a prompt's state is worth keeping."""
        if not self.running.sharing:
            return []
        size = self.rows.page_size
        last = (int(self.rows.known[row]) - 1) // size * size
        return sorted({last, self.running.requests[row].matched} - {0})

    def _keep(self, b: int, row: int, at: int, start: int, page: int) -> list[tuple[int, int, int]]:
        states, size = self.cache.states, self.rows.page_size
        assert states is not None
        salt = self.running.requests[row].salt
        chain = self.cache.tree.match(self.rows.tokens[row, :at], salt)
        if len(chain) * size != at:
            return []
        made = states.keep(chain[-1], page, at)
        return [] if page >= 0 or made < 0 else [(b, at - start, made)]


def states_for(
    config: InferenceConfig, facts: Facts, clock: Clock, emit: Callable[[AnyEvent], None] | None
) -> StatePages | None:
    """State pages for a model that needs them. Raises BadInput for what cannot go with them."""
    if not facts.bytes_per_state:
        return None
    if config.speculation.width > 1:
        raise BadInput(
            f"speculation.branches: {facts.model} keeps a recurrent state, which follows one chain "
            "of drafts; set it to 1"
        )
    if config.attention_every:
        raise BadInput(
            f"attention_every: {facts.model} has layers with a recurrent state, behind which "
            "attention is not sampled; set it to 0"
        )
    host = config.max_running if config.host_pages else 0
    return StatePages(config.max_running, host, clock, emit)
