"""A thread of thought: where it forked from, what it may still say, and where it writes."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from engine.cache.layouts import Block

State: TypeAlias = Literal["running", "waiting", "finished", "joined", "pruned", "aborted"]


@dataclass(slots=True, eq=False)
class Thread:
    """One of several threads over a cache. Only running threads are fed; waiting ones will be."""

    name: str
    parent: str
    number: int  # order of appearance
    budget: int  # tokens it may generate
    block: Block  # the open block it writes to
    feed: list[int]  # tokens to be written next; the last one's logits give the next token
    critical: int = 0  # tokens its longest chain may have; 0: as the config says
    seconds: float = 0.0  # of the run's clock since it was born; 0: as the config says
    born: float = 0.0
    seed: int = 0
    state: State = "running"
    why: str = ""
    tokens: list[int] = field(default_factory=list)  # generated, oldest first
    depth: int = 0  # tokens on the longest chain that ends here
    step: int = 1  # of its thought, from 1
    alone: bool = False  # a context of its own: it sees its own block, which nobody else sees
    reads: list[Block] = field(default_factory=list)  # blocks of threads it joined
    abreast: bool = False  # what it reads after the first block shares positions
    path: int = 0  # whose embedding its keys and values carry; 0: none
    silent: bool = False  # it reads what it is fed and says nothing
    sees: dict[str, int] = field(default_factory=dict)  # block -> place, as last told
    known: dict[Block, int] = field(default_factory=dict)  # block -> tokens of it seen so far
    held: dict[Block, int] = field(default_factory=dict)  # block -> its first so many pages
    pages: dict[int, int] = field(default_factory=dict)  # page -> through how many blocks

    @property
    def running(self) -> bool:
        """Whether it thinks now."""
        return self.state == "running"

    @property
    def alive(self) -> bool:
        """Whether it thinks now or will once those it waits for have ended."""
        return self.state in ("running", "waiting")
