"""Spawning: threads that spawn children and wait for what they return (arXiv 2504.15466, 3).

A parent writes the messages of its children and a token that asks for them. Each child starts with
a context of its own; the parent pauses until all have ended and goes on with what they return.
What cannot be spawned is told and returns nothing; nobody else stops for it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from engine.core.config import knob
from engine.core.run import Live
from engine.inference.requests.request import Sampling
from engine.reasoning.solving.countdown import CountdownConfig, speaking
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.solving.solve import drive, load
from engine.reasoning.solving.thread_groups import ThreadGroup, ThreadMethod
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.reasoner import Reasoner
from engine.reasoning.threads.thread import Thread
from engine.tasks.countdown.task import CountdownProblem
from engine.tasks.countdown.traces import (
    JOIN,
    NOTHING,
    NUMBERS,
    WORDS,
    child_prompt,
    ids,
    judge,
    messages,
    prompt,
    returned,
    steps,
    words_of,
)
from engine.tasks.task import Problem, Verdict

Tokens = list[int]


class SpawningConfig(CountdownConfig):
    """A model that writes searches down, the problems it gets, and what it may use for each."""

    model: str = knob("countdown-reinforced", "A shipped model, or a folder")
    search: Literal["parallel", "serial"] = knob(
        "parallel", "The prompt's first word: search by children, or in one context"
    )
    problems: int = knob(2, "Test problems to solve", low=1, high=100_000)
    first: int = knob(3, "Number of the first one", low=0, high=2**40)
    together: int = knob(
        12, "Problems under way at once", low=1, high=1024, called="Problems at once"
    )
    sampling: Sampling = knob(
        make=lambda: Sampling(temperature=1.0), doc="How tokens are drawn", group="sampling"
    )
    window: int = knob(
        160, "Tokens that one context may hold", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    critical: int = knob(
        0, "Tokens on the longest chain from a problem to its answer; 0: no limit",
        low=0, high=1 << 20, unit="tokens", group="budget",
    )  # fmt: skip
    total: int = knob(
        0, "Tokens of a problem's threads together; 0: no limit", low=0, high=1 << 20,
        unit="tokens", group="budget",
    )  # fmt: skip
    children: int = knob(8, "Children that one join may have", low=1, high=64, group="budget")
    pages: int = knob(2048, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)
    own_context: bool = knob(
        True, "A child knows its message alone; off: it reads its parent's context first",
        group="mechanism",
    )  # fmt: skip
    replay: bool = knob(
        True, "Replay an answer's steps; off: believe the result it states", group="mechanism"
    )
    fault: Literal["none", "returns_lost"] = knob(
        "none", "What goes wrong at a join: nothing that a child returns arrives", group="faults"
    )

    def reasoning(self) -> ReasoningConfig:
        return self.threads_with(budget=self.window, critical=self.critical)


class Calls(NamedTuple):
    """How a model asks for children, in tokens."""

    join: int  # whoever says it waits for the children it has asked for
    prompts: Callable[[Tokens, Tokens], list[Tokens]]  # (prompt, written since the last join)
    returned: Callable[[Tokens], Tokens]  # what a child that has written this returns
    nothing: Tokens  # … and one that died or was never started


def asked_in_words(given: Tokens, written: Tokens) -> list[Tokens]:
    """The prompts of the children that a trace of Countdown asks for."""
    return [ids(child_prompt(words_of(given), one)) for one in messages(words_of(written))]


COUNTDOWN = Calls(
    NUMBERS[JOIN], asked_in_words, lambda written: ids(returned(words_of(written))), ids([NOTHING])
)


@dataclass(slots=True)
class Family(ThreadGroup):
    """A root that spawns and waits. `waits_for`: None for a child that could not be started."""

    read: int = 0  # tokens of the root up to its last join
    waits_for: list[Thread | None] | None = None

    @property
    def returned(self) -> bool:
        """Whether the root waits for nobody any more."""
        return self.waits_for is not None and not any(c and c.alive for c in self.waits_for)


class Spawning(ThreadMethod[SpawningConfig, Family]):
    """Spawns the children that a root asks for, and joins all of them once they have ended."""

    def __init__(
        self, config: SpawningConfig, reasoner: Reasoner, calls: Calls = COUNTDOWN
    ) -> None:
        super().__init__(config, reasoner)
        self.calls = calls

    def prompt(self, problem: Problem) -> list[int]:
        assert isinstance(problem, CountdownProblem)
        return ids(prompt(self.config.search, problem))

    def open(self, asked: Asked, prompt: list[int], root: Thread) -> Family:
        return Family(asked, prompt, root)

    def before_step(self) -> None:
        """Parents whose children have all ended go on; what has used its budget up ends."""
        for family in self.groups.values():
            if family.returned and family.root.alive:
                self._join(family)
        for family in self.groups.values():
            self._bound(family)

    def advance(self, family: Family) -> None:
        root = family.root
        if root.running and root.tokens and root.tokens[-1] == self.calls.join:
            self._fork(family)

    def _fork(self, family: Family) -> None:
        """Start what the root has asked for since its last join, and let it wait."""
        root = family.root
        prompts = self.calls.prompts(family.prompt, root.tokens[family.read :])
        family.read = len(root.tokens)
        family.waits_for = [self._child(family, *one) for one in enumerate(prompts)]
        started = sum(child is not None for child in family.waits_for)
        self.table.wait(root.name, f"waits for {started} children")

    def _child(self, family: Family, place: int, prompt: list[int]) -> Thread | None:
        root, limit = family.root, self.config.children
        if place >= limit:
            said = f"spawn by {root.name}: child {place + 1} of a join that may have {limit}"
            self.tell(root, "refuse", said)
            return None
        if not self.config.own_context:  # a mistake, to be shown as one
            prompt = [*family.prompt, *root.tokens, *prompt]
        return self.spawn(family, prompt, len(family.children) + 1)

    def _join(self, family: Family) -> None:
        root, critical = family.root, self.reasoner.config.critical
        given: Tokens = []
        for child in family.waits_for or ():
            arrives = self.config.fault != "returns_lost"
            done = arrives and child is not None and child.state == "finished"
            given += self.calls.returned(child.tokens) if done and child else self.calls.nothing
        started = [child for child in family.waits_for or () if child is not None]
        family.waits_for = None
        self.join(family, started, "returned", given, given)
        if critical and root.depth >= critical:
            self.table.end(root, "finished", f"the critical path has its {critical} tokens")

    def _bound(self, family: Family) -> None:
        """End whose context is full, and a family that has used its tokens up."""
        window, total = self.config.window, self.config.total
        spent = total and family.tokens >= total
        for thread in family.alive:
            full = thread.block.length + len(thread.feed) > window
            if spent:
                why = f"{family.name} and its children have used {total} tokens"
                self.table.end(thread, "finished", why)
            elif full and thread.running:
                self.table.end(thread, "finished", f"its context of {window} tokens is full")

    def result(self, family: Family) -> Result:
        problem, written = family.asked.problem, words_of(family.root.tokens)
        assert isinstance(problem, CountdownProblem)
        answer, verdict = steps(written), verdict_of(self.config, problem, written)
        return Result(
            " ".join(map(str, answer)) if answer else "",
            verdict.right,
            verdict.reason,
            figures={
                "tokens": family.tokens,
                "critical": family.depth,
                "children": len(family.children),
            },
        )


def verdict_of(
    config: SpawningConfig, problem: CountdownProblem, written: Sequence[str]
) -> Verdict:
    """Whether a root's own words end in a right answer."""
    if config.replay:
        return judge(problem, written)
    stated = steps(written)
    right = stated is not None and stated[-1].result == problem.target
    return Verdict(right, f"states {stated[-1].result}" if stated else "gives no answer")


def run(config: SpawningConfig, live: Live) -> None:
    """Solve the config's problems; `live` is where events go and commands come from."""
    loaded = speaking(load(config, live), WORDS, "traces of Countdown", "countdown-imitated")
    drive(config, live, loaded, partial(Spawning, config))
