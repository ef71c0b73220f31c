"""ThreadMethod: the fork/join controller, over groups of one root thread and its children.

What methods have in common is here: a root reads its problem, children are spawned or forked with
seeds of their own, a root waits and reads what they leave, and whoever outlives its root is pruned.
A method says who forks when, what a child starts from, when to join and who is pruned, in
`before_step` and `advance`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.inference.executors.executor import Tokens
from engine.reasoning.solving.config import ThreadGroupConfig
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.run import obey
from engine.reasoning.threads.thread import Thread
from engine.reasoning.threads.thread_table import MOST
from engine.tasks.task import Problem


@dataclass(slots=True)
class ThreadGroup:
    """A problem under way: the root thread, which reads its prompt, and its children in order."""

    asked: Asked
    prompt: list[int]
    root: Thread
    children: list[Thread] = field(default_factory=list)
    prompts: list[list[int]] = field(default_factory=list)  # of children that were spawned
    heard: list[tuple[int, list[int]]] = field(default_factory=list)  # after so many of its tokens

    @property
    def name(self) -> str:
        """Of the problem and of its root."""
        return self.root.name

    @property
    def threads(self) -> list[Thread]:
        """The root, then its children."""
        return [self.root, *self.children]

    @property
    def alive(self) -> list[Thread]:
        """Those that go on, children first."""
        return [thread for thread in (*self.children, self.root) if thread.alive]

    @property
    def tokens(self) -> int:
        """Tokens that all of them have generated."""
        return sum(len(thread.tokens) for thread in self.threads)

    @property
    def depth(self) -> int:
        """Tokens on the longest chain."""
        return max(thread.depth for thread in self.threads)


GroupT = TypeVar("GroupT", bound=ThreadGroup)
ConfigT = TypeVar("ConfigT", bound=ThreadGroupConfig)


class ThreadMethod(ABC, Generic[ConfigT, GroupT]):
    """A method of reasoning by threads of one reasoner. `begin` some, then `step` until all end."""

    budget: ClassVar[int] = MOST  # tokens of a root; as many as the config says

    def __init__(self, config: ConfigT, reasoner: Reasoner) -> None:
        self.config, self.reasoner, self.table = config, reasoner, reasoner.table
        self.groups: dict[str, GroupT] = {}  # those that go on, by name

    @property
    def width(self) -> int:
        """Threads of a problem that run at once, as far as that is known when it begins."""
        return 1

    @abstractmethod
    def prompt(self, problem: Problem) -> list[int]:
        """What a root reads. Raises BadInput."""

    @abstractmethod
    def open(self, asked: Asked, prompt: list[int], root: Thread) -> GroupT:
        """The group of a root that has just been started."""

    @abstractmethod
    def advance(self, group: GroupT) -> None:
        """After a step: let the group fork, join or prune, as its threads now stand."""

    @abstractmethod
    def result(self, group: GroupT) -> Result:
        """What became of a group that is over."""

    def before_step(self) -> None:
        """Before each step of all threads."""

    def over(self, group: GroupT) -> bool:
        """Whether nothing more comes of a group."""
        return not group.root.alive

    def asked(self, group: GroupT) -> Asked:
        """The problem of a group."""
        return group.asked

    def room(self) -> bool:
        """Whether another problem may begin: always where none is under way."""
        coming = sum(self.width - 1 for group in self.groups.values() if not group.children)
        running, most = len(self.table.running) + coming, self.reasoner.config.threads
        few = len(self.groups) < self.config.together
        return not self.groups or (few and running + self.width <= most)

    def begin(self, asked: Asked) -> GroupT:
        """Start the root of a problem. Raises BadInput where the prompt fits no context."""
        prompt, context = self.prompt(asked.problem), self.reasoner.loaded.config.max_positions
        if not 1 <= len(prompt) < context:
            raise BadInput(f"prompt: {len(prompt)} tokens; the model takes 1 to {context - 1}")
        root = self.table.start(asked.name, prompt.copy(), self.budget, alone=True)
        root.seed = asked.seed
        group = self.groups[asked.name] = self.open(asked, prompt, root)
        self.tell_given(root, prompt)
        return group

    def obey(self, command: dict[str, Any]) -> None:
        """Do what a person said. Raises BadInput where it cannot be done."""
        obey(self.reasoner, command)

    def step(self) -> list[GroupT]:
        """One token for every running thread; the groups that are over now."""
        self.before_step()
        self.reasoner.step()
        for group in self.groups.values():
            self.advance(group)
        over = [group for group in self.groups.values() if self.over(group)]
        for group in over:
            del self.groups[group.name]
            for thread in group.alive:
                self.table.prune(thread.name, f"{group.name}, its parent, is over")
        return over

    def spawn(
        self, group: GroupT, prompt: list[int], number: int, budget: int = MOST
    ) -> Thread | None:
        """A child with a context of its own; None, and told so, where there is no room for it.

        `number`: which of the root's children it is, as far as its draws go.
        """
        try:
            child = self.table.spawn(group.name, prompt.copy(), budget)
        except BadInput as fault:
            self.tell(group.root, "refuse", str(fault))
            return None
        child.seed = group.root.seed * 1_009 + number
        group.children.append(child)
        group.prompts.append(prompt)
        self.tell_given(child, prompt)
        return child

    def join(
        self, group: GroupT, children: Sequence[Thread], what: str, feed: list[int],
        given: list[int],
    ) -> None:  # fmt: skip
        """The waiting root goes on with `feed`, of which `given` is told, after its children."""
        root = group.root
        names = ", ".join(child.name for child in children) or "nobody"
        self.tell(root, "join", f"{root.name} reads what was {what} by {names}")
        self.table.resume(root.name, feed, group.depth)
        group.heard.append((len(root.tokens), feed))
        self.tell_given(root, given)

    def tell(self, thread: Thread, name: str, text: str) -> None:
        """A mark in the thread's lane."""
        self.table.emit(Mark(self.reasoner.clock.now(), thread.name, name, text))

    def tell_given(self, thread: Thread, tokens: Sequence[int]) -> None:
        """What the thread reads and did not say."""
        self.tell(thread, "given", self.reasoner.pieces.text(list(tokens)))

    @property
    def tokenizer(self) -> Tokens:
        """Of the model. Raises BadInput where it has none."""
        if self.reasoner.loaded.tokenizer is None:
            raise BadInput(f"model {self.reasoner.loaded.name!r}: it has no tokenizer")
        return self.reasoner.loaded.tokenizer
