"""Threads that spawn children and wait for what they return (arXiv 2504.15466, section 3).

A parent writes the messages of its children and a token that asks for them. Each child starts with
a context of its own; the parent pauses until all have ended and goes on with what they return.
What cannot be spawned is told and returns nothing; nobody else stops for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.thread import Thread

Tokens = list[int]


class Calls(NamedTuple):
    """How a model asks for children, in tokens."""

    join: int  # whoever says it waits for the children it has asked for
    prompts: Callable[[Tokens, Tokens], list[Tokens]]  # (prompt, written since the last join)
    returned: Callable[[Tokens], Tokens]  # what a child that has written this returns
    nothing: Tokens  # … and one that died or was never started


class Limits(NamedTuple):
    """What a family of threads may use; 0: as much as it likes."""

    window: int = 0  # tokens in one context
    children: int = 0  # children of one join
    total: int = 0  # tokens that a root and all its children generate


@dataclass(slots=True)
class Waiting:
    """A parent that waits: its children in order, None for one that could not be started."""

    parent: Thread
    children: list[Thread | None]


@dataclass(slots=True)
class Family:
    """A root thread, the prompt it began with, and all children so far."""

    root: Thread
    prompt: Tokens
    children: list[Thread] = field(default_factory=list)
    read: int = 0  # tokens of the root up to its last join

    @property
    def tokens(self) -> int:
        """Tokens that all of them have generated."""
        return len(self.root.tokens) + sum(len(child.tokens) for child in self.children)

    def alive(self) -> list[Thread]:
        """Those that go on, children first."""
        return [thread for thread in (*self.children, self.root) if thread.alive]


class Spawning:
    """Families of threads of one reasoner. `begin` some, then `step` until False."""

    def __init__(
        self, reasoner: Reasoner, calls: Calls, limits: Limits, own_context: bool = True
    ) -> None:
        self.reasoner, self.board = reasoner, reasoner.board
        self.calls, self.limits = calls, limits
        self.own_context = own_context  # off: a child reads its parent's context first, a mistake
        self.families: dict[str, Family] = {}  # those that go on, by root
        self.waiting: list[Waiting] = []

    def begin(self, name: str, prompt: Tokens, seed: int) -> Family:
        """A root thread with this prompt; its draws depend on `seed` alone. Raises BadInput."""
        root = self.board.start(name, prompt.copy(), alone=True)
        root.seed = seed
        self.families[name] = Family(root, prompt)
        self._tell_given(root, prompt)
        return self.families[name]

    def step(self) -> list[Family]:
        """One token for every running thread; the families that are over now."""
        self._return()
        self._bound()
        self.reasoner.step()
        for family in self.families.values():
            root = family.root
            if root.running and root.tokens and root.tokens[-1] == self.calls.join:
                self._spawn(family)
        over = [family for family in self.families.values() if not family.root.alive]
        for family in over:
            del self.families[family.root.name]
            for thread in family.alive():
                self.board.prune(thread.name, f"{family.root.name}, its parent, is over")
        return over

    def _spawn(self, family: Family) -> None:
        """Start what the root has asked for since its last join, and let it wait."""
        root, board = family.root, self.board
        asked = self.calls.prompts(family.prompt, root.tokens[family.read :])
        family.read = len(root.tokens)
        children = [self._child(family, place, prompt) for place, prompt in enumerate(asked)]
        self.waiting.append(Waiting(root, children))
        board.wait(root.name, f"waits for {sum(child is not None for child in children)} children")

    def _child(self, family: Family, place: int, prompt: Tokens) -> Thread | None:
        root, limit = family.root, self.limits.children
        if not self.own_context:
            prompt = [*family.prompt, *root.tokens, *prompt]
        try:
            if limit and place >= limit:
                raise BadInput(
                    f"spawn by {root.name}: child {place + 1} of a join that may have {limit}"
                )
            child = self.board.spawn(root.name, prompt.copy())
        except BadInput as fault:
            self._tell(root, "refuse", str(fault))
            return None
        child.seed = root.seed * 1_009 + len(family.children) + 1
        family.children.append(child)
        self._tell_given(child, prompt)
        return child

    def _return(self) -> None:
        """Parents whose children have all ended go on with what those return."""
        for one in [w for w in self.waiting if not any(c and c.alive for c in w.children)]:
            self.waiting.remove(one)
            if one.parent.alive:
                self._join(one)

    def _join(self, one: Waiting) -> None:
        parent, critical = one.parent, self.reasoner.config.critical
        given: Tokens = []
        for child in one.children:
            done = child is not None and child.state == "finished"
            given += self.calls.returned(child.tokens) if done and child else self.calls.nothing
        started = [child for child in one.children if child is not None]
        depth = max((child.depth for child in started), default=0)
        names = ", ".join(child.name for child in started) or "nobody"
        self._tell(parent, "join", f"{parent.name} reads what was returned by {names}")
        self.board.resume(parent.name, given, depth)
        self._tell_given(parent, given)
        if critical and parent.depth >= critical:
            self.board.end(parent, "finished", f"the critical path has its {critical} tokens")

    def _bound(self) -> None:
        """End whose context is full, and families that have used their tokens up."""
        window, total = self.limits.window, self.limits.total
        for family in self.families.values():
            spent = total and family.tokens >= total
            for thread in family.alive():
                full = window and thread.block.length + len(thread.feed) > window
                if spent:
                    why = f"{family.root.name} and its children have used {total} tokens"
                    self.board.end(thread, "finished", why)
                elif full and thread.running:
                    why = f"its context of {window} tokens is full"
                    self.board.end(thread, "finished", why)

    def _tell(self, thread: Thread, name: str, text: str) -> None:
        self.board.emit(Mark(self.board.clock.now(), thread.name, name, text))

    def _tell_given(self, thread: Thread, tokens: Sequence[int]) -> None:
        """What the thread reads and did not say."""
        self._tell(thread, "given", self.reasoner.pieces.text(list(tokens)))
