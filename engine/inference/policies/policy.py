"""Scheduling policies: who is next, who may enter, what a step mixes, how a request yields.

Policies are frozen and stateless. What a policy learns from seeing the whole job it returns as a
`Ranking`, which the engine notes with the requests; what it needs to know of the moment comes as a
`View`.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from engine.core.config import Policy
from engine.inference.requests.request import Request
from engine.inference.requests.rows import Rows

Phase: TypeAlias = Literal["", "prefill", "decode"]  # what a step is for; empty: for both


@dataclass(slots=True)
class View:
    """The scheduler as a policy sees it at the start of a step. Read, never written."""

    step: int
    now: float  # seconds
    rows: Rows
    running: list[Request]  # by row
    find: Callable[[], np.ndarray]  # what `decoding` is
    prefilling: int  # running requests whose prompt is not computed yet
    waiting: int
    budget: int  # tokens a step may compute
    max_running: int
    page_size: int
    pages: int  # of the pool
    pages_free: int  # free, or cached and held by nobody
    host_free: int
    served: dict[str, float] = field(default_factory=dict)  # tokens computed for each user
    phase: Phase = ""
    found: np.ndarray | None = None

    @property
    def decoding(self) -> np.ndarray:
        """Rows that can decode, int64, rising, when it was first asked."""
        if self.found is None:
            self.found = self.find()
        return self.found


class Mix(NamedTuple):
    """What one step may hold. The first of several that gives any work is taken."""

    decode: np.ndarray | None = None  # rows to decode; None: all that can
    prefill_tokens: int = 0
    whole_prompts: bool = False  # never cut a prompt; the last one may exceed the tokens
    padded: bool = False  # compute prompts as long as the longest, and rows that are over
    admit: int = 0  # new requests at most
    only: int = -1  # prefill only this row's request


class Need(NamedTuple):
    """Pages one request needs: now for its known tokens, and at its end."""

    now: int
    peak: int


class Ranking(NamedTuple):
    """A plan of a whole job of N requests, in the order in which they were shown. int64 arrays."""

    rank_N: np.ndarray  # place of each in the planned order
    group_N: np.ndarray  # requests with a prefix in common; -1 for none
    shared_N: np.ndarray  # tokens of that prefix


class Ordering(Policy):
    """Who among the waiting is next."""

    folder = "engine.inference.policies.ordering"

    @property
    def moving(self) -> bool:
        """Whether keys change while a request waits."""
        return False

    @property
    def accounts(self) -> bool:
        """Whether keys go by what was `served` to each user."""
        return False

    @property
    def takes_turns(self) -> bool:
        """Whether requests of one source stand in one line, by arrival, whose first alone is
        compared with others, and samples of a prompt need not begin at once."""
        return False

    @property
    def by_arrival(self) -> bool:
        """Whether all keys are alike."""
        return False

    def prepare(self, requests: Sequence[Request], page_size: int) -> Ranking | None:
        """See every request known before the start; None: nothing is planned."""
        return None

    @abstractmethod
    def key(self, request: Request, view: View) -> tuple[float, ...]:
        """Lowest goes first; the engine breaks ties by arrival."""

    @property
    def displaces(self) -> bool:
        """Whether `outranks` may ever say yes."""
        return False

    def outranks(self, waiting: Request, running: Request, view: View) -> bool:
        """Whether `waiting` may take the place of `running` when there is no room."""
        return False


class Batching(Policy):
    """What a step mixes: decodes, prompt chunks, new requests."""

    folder = "engine.inference.policies.batching"

    @property
    def holds_until_all_end(self) -> bool:
        """Whether finished requests keep their place, as padding, until their batch has ended."""
        return False

    @property
    def tells_moves(self) -> bool:
        """Whether rows that move into the place of ended ones are worth an event each."""
        return False

    @property
    def forgets_tokens(self) -> bool:
        """Whether a row that moves leaves its tokens behind, which is wrong."""
        return False

    @property
    def loses_tokens(self) -> bool:
        """Whether of a step's decoded tokens only one row's arrives, which is wrong."""
        return False

    @abstractmethod
    def mixes(self, view: View) -> tuple[Mix, ...]:
        """What the next step may hold, best first; the first that gives any work is taken."""
