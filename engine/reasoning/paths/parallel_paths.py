"""Parallel paths of thought and a summary over their caches (ParaThinker, arXiv 2509.04475).

A root thread reads the prompt and forks paths, each begun by its control token. A path sees the
prompt's pages, which are shared and never written again, and what it writes itself; its keys and
values carry its embedding from the moment they are computed. When enough paths have ended the root
goes on as the summary: it sees the pages of all of them, and nothing is computed again. A path that
finds no room, or is killed, is told of; the others go on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

from engine.core.config import knob
from engine.core.errors import BadInput
from engine.core.run import Live
from engine.inference.requests.request import Sampling
from engine.reasoning.solving.countdown import CountdownConfig, speaking
from engine.reasoning.solving.method import Asked, Result
from engine.reasoning.solving.solve import drive, load
from engine.reasoning.solving.thread_groups import ThreadGroup, ThreadMethod
from engine.reasoning.solving.vote import vote
from engine.reasoning.threads.config import ReasoningConfig
from engine.reasoning.threads.reasoner import ENDED, Reasoner
from engine.reasoning.threads.thread import Thread
from engine.tasks.countdown.paths import PATH_WORDS, SUMMARY, THINK, asked, path_ids, path_words
from engine.tasks.countdown.task import CountdownProblem
from engine.tasks.countdown.traces import judge, steps
from engine.tasks.task import Problem

# How many of so many paths have to end by themselves for the summary to begin.
ENOUGH: Mapping[str, Callable[[int], int]] = {
    "first": lambda width: 1,
    "half": lambda width: -(-width // 2),
    "last": lambda width: width,
}


class PathsConfig(CountdownConfig):
    """A model with path tokens, the problems it gets, and what it may use for each."""

    gone = ("sweep",)
    model: str = knob("countdown-paths", "A shipped model, or a folder")
    width: int = knob(8, "Paths of thought side by side", low=1, high=64, unit="paths")
    problems: int = knob(1, "Test problems to solve", low=1, high=100_000)
    first: int = knob(15, "Number of the first one", low=0, high=2**40)
    together: int = knob(
        8, "Problems under way at once", low=1, high=1024, called="Problems at once"
    )
    sampling: Sampling = knob(
        make=lambda: Sampling(temperature=0.5), doc="How tokens are drawn", group="sampling"
    )
    budget: int = knob(
        96, "Tokens that each path may draw", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    total: int = knob(
        0, "Tokens that all paths together may draw, dealt out evenly; 0: `budget` each",
        low=0, high=1 << 20, unit="tokens", group="budget",
    )  # fmt: skip
    summary: int = knob(
        16, "Tokens that the summary may draw", low=1, high=1 << 20, unit="tokens", group="budget"
    )
    finish: Literal["first", "half", "last"] = knob(
        "first", "The summary begins when the first path has ended by itself, half of them, or all",
        group="budget", called="Summary begins after the path that ends")  # fmt: skip
    threads: int = knob(1024, "Threads that may run at once", low=1, high=1024, group="budget")
    pages: int = knob(128, "Pages of the cache", low=1, high=1 << 22, group="cache", log=True)
    embeddings: bool = knob(
        True, "Add each path's embedding to its keys and values", group="mechanism"
    )
    abreast: bool = knob(
        True, "Paths share their positions; off: the summary sees one after another",
        group="mechanism",
    )  # fmt: skip
    sees: int = knob(
        0,
        "How many paths the summary sees; 0: all",
        low=0,
        high=64,
        group="mechanism",
        called="Paths the summary sees",
    )
    reuse: bool = knob(
        True, "The summary reads the paths' cache; off: it computes their text again, as one",
        group="mechanism", called="Reuse the paths' cache")  # fmt: skip

    @property
    def each(self) -> int:
        """Tokens that each path may draw."""
        return max(1, self.total // self.width) if self.total else self.budget

    def reasoning(self) -> ReasoningConfig:
        return self.threads_with(budget=self.each)


class Controls(NamedTuple):
    """The control tokens: one that each path begins with, and the summary's."""

    think: tuple[int, ...]
    summary: int


COUNTDOWN = Controls(tuple(path_ids(THINK)), path_ids([SUMMARY])[0])


@dataclass(slots=True)
class PathGroup(ThreadGroup):
    """A problem's paths; its root reads the prompt and says the summary."""

    begun: bool = False  # the summary
    marks: dict[str, int] = field(default_factory=dict)  # path -> its control token

    def written(self) -> list[list[int]]:
        """What stands in the cache of each path: all it drew but the token that ended it."""
        return [path.tokens[:-1] for path in self.children]


class ParallelPaths(ThreadMethod[PathsConfig, PathGroup]):
    """Forks every path once the prompt is read, joins them all in the summary."""

    def __init__(
        self, config: PathsConfig, reasoner: Reasoner, controls: Controls = COUNTDOWN
    ) -> None:
        """Raises BadInput where the model was not taught so many paths."""
        super().__init__(config, reasoner)
        self.controls = controls
        known = min(len(controls.think), reasoner.loaded.config.paths)
        if config.width > known:
            raise BadInput(
                f"width {config.width}: model {reasoner.loaded.name!r} was taught {known} paths; "
                "take fewer, or a model that knows more"
            )

    @property
    def width(self) -> int:
        return self.config.width

    def prompt(self, problem: Problem) -> list[int]:
        assert isinstance(problem, CountdownProblem)
        return path_ids(asked(problem))

    def open(self, asked: Asked, prompt: list[int], root: Thread) -> PathGroup:
        root.budget, root.silent, root.abreast = self.config.summary, True, self.config.abreast
        return PathGroup(asked, prompt, root)

    def advance(self, group: PathGroup) -> None:
        if group.root.running and group.root.silent:
            self._fork(group)
        elif group.root.alive and not group.begun:
            self._join(group)

    def _fork(self, group: PathGroup) -> None:
        """The prompt has been read: its block is closed, the paths begin after it."""
        root, config = group.root, self.config
        prompt = root.block
        self.table.close(root)
        root.silent = False
        for number in range(1, config.width + 1):
            mark = self.controls.think[number - 1]
            path = self.spawn(group, [mark], number, config.each)
            if path is not None:
                group.marks[path.name] = mark
                path.reads, path.abreast = [prompt], root.abreast
                path.path = number if config.embeddings else 0
                if not config.sees or number <= config.sees:
                    root.reads.append(path.block)
        self.table.wait(root.name, f"waits for {len(group.children)} paths")

    def _join(self, group: PathGroup) -> None:
        """Once enough paths have ended the others stop, and the root goes on as the summary."""
        root, paths = group.root, group.children
        ended = sum(path.why == ENDED for path in paths)
        alive = [path for path in paths if path.alive]
        if alive and ended < ENOUGH[self.config.finish](len(paths)):
            return
        for path in alive:
            self.table.end(path, "finished", f"{ended} of {len(paths)} paths have ended")
        seen = [path for path in paths if path.block in root.reads]
        mark = [self.controls.summary]
        feed = mark.copy()
        if not self.config.reuse:
            root.reads, root.abreast = [], False
            feed = [*self._text(group, seen), *feed]
        self.join(group, seen, "thought", feed, mark)
        group.begun = True

    def _text(self, group: PathGroup, seen: list[Thread]) -> list[int]:
        """The prompt and these paths as one text."""
        thought = [[group.marks[path.name], *path.tokens[:-1]] for path in seen]
        return [*group.prompt, *(token for tokens in thought for token in tokens)]

    def result(self, group: PathGroup) -> Result:
        """Beside the summary's answer: the vote of the paths, and whether any of them is right.

        The vote is for the answer that most paths state, however it is written; a path that states
        none has no vote, and of equals the first path's answer counts.
        """
        problem = group.asked.problem
        assert isinstance(problem, CountdownProblem)
        verdicts = [judge(problem, path_words(path.tokens)) for path in group.children]
        chosen = vote((verdict.answer, 1.0) for verdict in verdicts)
        words = path_words(group.root.tokens)
        verdict, answer = judge(problem, words), steps(words)
        return Result(
            " ".join(map(str, answer)) if answer else "",
            verdict.right,
            verdict.reason,
            {
                "voted": any(one.right for one in verdicts if one.answer == chosen),
                "covered": any(one.right for one in verdicts),
            },
            {"tokens": group.tokens, "critical": group.depth, "summary": len(words)},
        )


def run(config: PathsConfig, live: Live) -> None:
    """Solve the config's problems; `live` is where events go and commands come from."""
    loaded = speaking(load(config, live), PATH_WORDS, "paths through Countdown", "countdown-paths")
    drive(config, live, loaded, partial(ParallelPaths, config))
