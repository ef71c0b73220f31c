"""The facts a run is made of: a dozen kinds of event, in seconds, bytes and flops.

A driver emits them in time order; views, measures and verdicts are computed from nothing else.
`time` is the moment of emission in seconds since the run opened, on the wall clock or the virtual
one. What lasts (`Span`, `Move`) is emitted when it ends and says when it started. Events carry
numbers and short strings, never tensors; a large array travels beside the log as a `Blob`.
"""

from typing import Any, Literal, TypeAlias

import msgspec

PageState: TypeAlias = Literal[
    "take",  # owner takes a free page
    "hit",  # owner joins a cached page found through the prefix tree
    "share",  # owner joins a page by forking from another owner
    "copy",  # owner takes a page as a private copy of page `parent` (copy on write)
    "index",  # the full page becomes a node of the prefix tree under page `parent`
    "drop",  # owner leaves the page
    "free",  # the page returns to the free list; `why` says so
    "swap_out",  # owner's contents leave the page for host page `parent`
    "swap_in",  # owner's contents return from host page `parent`
]


class Event(msgspec.Struct, frozen=True):
    """Anything that happened. `time`: seconds since the run opened."""

    time: float


class Opened(Event, frozen=True, tag="opened"):
    """The header: all that a reader needs to understand the log without asking anyone."""

    config: dict[str, Any]
    study: str = ""
    seed: int = 0
    clock: str = "wall"  # "wall" or "virtual"
    machine: dict[str, Any] = {}
    facts: dict[str, Any] = {}  # what views need and configs only imply: pages, page_size, …
    version: int = 1


class Span(Event, frozen=True, tag="span"):
    """Something took from `start` to `time` in `lane`, doing `flops` and moving `bytes`."""

    lane: str
    name: str
    start: float
    flops: float = 0.0
    bytes: float = 0.0
    tag: str = ""

    @property
    def stop(self) -> float:
        """When it ended: the moment of emission."""
        return self.time


class Level(Event, frozen=True, tag="level"):
    """A quantity has this value from now on."""

    lane: str
    name: str
    value: float


class Mark(Event, frozen=True, tag="mark"):
    """A moment: a decision taken, a failure, told as a sentence."""

    lane: str
    name: str
    text: str = ""


class Token(Event, frozen=True, tag="token"):
    """A thread said something. `accepted` is false for a draft that verification refused.

    `branch`: of a tree of drafts the branch that a refused one stood on, from 1; 0 of a chain.
    """

    thread: str
    text: str
    logprob: float = 0.0
    accepted: bool = True
    branch: int = 0


class Branch(Event, frozen=True, tag="branch"):
    """A thread (or request, which is a thread) changed state; `parent` is where it forked from.

    States: queued, running, preempted, swapped, joined, pruned, finished, aborted, rejected.
    """

    thread: str
    parent: str = ""
    state: str = "running"
    why: str = ""


class Page(Event, frozen=True, tag="page"):
    """A cache page changed hands. `start` is the position of its first token in its owner's view.

    `parent` is the page it was copied from (copy), hangs under (index, -1 at the root), or the host
    page it went to or came from (swap_out, swap_in). `tokens` is how many positions are filled,
    where the event knows it. `kind`: "state" of a page that holds a recurrent state, which
    are counted apart; `start` is how many tokens it stands for.
    """

    page: int
    owner: str
    state: PageState
    start: int = 0
    tokens: int = 0
    parent: int = -1
    why: str = ""
    kind: str = ""


class Move(Event, frozen=True, tag="move"):
    """`bytes` crossed from `source` to `target` between `start` and `time`."""

    source: str
    target: str
    bytes: float
    start: float
    tag: str = ""


class Route(Event, frozen=True, tag="route"):
    """How many tokens went to each expert (of `layer`) or replica."""

    layer: str
    counts: list[int]


class Blob(Event, frozen=True, tag="blob"):
    """A large array lies in the log's blobs under `ref`."""

    name: str
    ref: str
    shape: list[int]


class Told(Event, frozen=True, tag="told"):
    """A person's command to a live run, recorded so that a replay is exact."""

    command: dict[str, Any]


class Closed(Event, frozen=True, tag="closed"):
    """The footer. `reason`: finished, stopped, or what went wrong."""

    reason: str


AnyEvent: TypeAlias = (
    Opened | Span | Level | Mark | Token | Branch | Page | Move | Route | Blob | Told | Closed
)
KINDS: tuple[type[Event], ...] = (
    Opened,
    Span,
    Level,
    Mark,
    Token,
    Branch,
    Page,
    Move,
    Route,
    Blob,
    Told,
    Closed,
)
