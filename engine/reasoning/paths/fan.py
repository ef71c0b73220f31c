"""Parallel paths of thought and a summary over their caches (ParaThinker, arXiv 2509.04475).

A root thread reads the prompt and forks paths, each begun by its control token. A path sees the
prompt's pages, which are shared and never written again, and what it writes itself; its keys and
values carry its embedding from the moment they are computed. When enough paths have ended the root
goes on as the summary: it sees the pages of all of them, and nothing is computed again. A path that
finds no room, or is killed, is told of; the others go on.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from engine.cache.layouts import Block
from engine.core.errors import BadInput
from engine.core.events import Mark
from engine.reasoning.paths.config import ENOUGH, PathsConfig
from engine.reasoning.threads.reasoner import ENDED, Reasoner
from engine.reasoning.threads.thread import Thread


class Marks(NamedTuple):
    """The control tokens: one that each path begins with, and the summary's."""

    think: tuple[int, ...]
    summary: int


@dataclass(slots=True)
class Fan:
    """A problem under way: its root, which reads the prompt and says the summary, and its paths."""

    root: Thread
    prompt: list[int]
    paths: list[Thread] = field(default_factory=list)
    begun: bool = False  # the summary

    def written(self) -> list[list[int]]:
        """What stands in the cache of each path: all it drew but the token that ended it."""
        return [path.tokens[:-1] for path in self.paths]


class Paths:
    """Fans of one reasoner. `begin` some, then `step` until nothing is left."""

    def __init__(self, reasoner: Reasoner, marks: Marks, config: PathsConfig) -> None:
        """Raises BadInput where the model was not taught so many paths."""
        self.reasoner, self.board = reasoner, reasoner.board
        self.marks, self.config = marks, config
        self.fans: dict[str, Fan] = {}  # those that go on, by root
        known = min(len(marks.think), reasoner.mind.config.paths)
        if config.width > known:
            raise BadInput(
                f"width {config.width}: model {reasoner.mind.name!r} was taught {known} paths; "
                "take fewer, or a model that knows more"
            )

    def begin(self, name: str, prompt: list[int], seed: int) -> Fan:
        """A problem whose draws depend on `seed` alone. Raises BadInput."""
        root = self.board.start(name, prompt.copy(), self.config.summary, alone=True)
        root.seed, root.silent, root.abreast = seed, True, self.config.abreast
        self.fans[name] = Fan(root, prompt)
        self._tell(root, "given", self.reasoner.pieces.text(prompt))
        return self.fans[name]

    def step(self) -> list[Fan]:
        """One token for every running thread; the fans that are over now."""
        self.reasoner.step()
        for fan in self.fans.values():
            if fan.root.running and fan.root.silent:
                self._fork(fan)
            elif fan.root.alive and not fan.begun:
                self._join(fan)
        over = [fan for fan in self.fans.values() if not fan.root.alive]
        for fan in over:
            del self.fans[fan.root.name]
            for path in fan.paths:
                if path.alive:
                    self.board.prune(path.name, f"{fan.root.name}, its parent, is over")
        return over

    def _fork(self, fan: Fan) -> None:
        """The prompt has been read: its block is closed, the paths begin after it."""
        root, board = fan.root, self.board
        prompt = root.block
        board.close(root)
        root.silent = False
        for number in range(1, self.config.width + 1):
            path = self._path(fan, prompt, number)
            if path is not None:
                fan.paths.append(path)
                if not self.config.sees or number <= self.config.sees:
                    root.reads.append(path.block)
        board.wait(root.name, f"waits for {len(fan.paths)} paths")

    def _path(self, fan: Fan, prompt: Block, number: int) -> Thread | None:
        root, mark = fan.root, self.marks.think[number - 1]
        try:
            path = self.board.spawn(root.name, [mark], self.config.each)
        except BadInput as fault:
            self._tell(root, "refuse", str(fault))
            return None
        path.reads, path.abreast = [prompt], root.abreast
        path.path = number if self.config.embeddings else 0
        path.seed = root.seed * 1_009 + number  # however wide the fan is
        self._tell(path, "given", self.reasoner.pieces.text([mark]))
        return path

    def _join(self, fan: Fan) -> None:
        """Once enough paths have ended the others stop, and the root goes on as the summary."""
        ended = sum(path.why == ENDED for path in fan.paths)
        alive = [path for path in fan.paths if path.alive]
        if alive and ended < ENOUGH[self.config.finish](len(fan.paths)):
            return
        for path in alive:
            self.board.end(path, "finished", f"{ended} of {len(fan.paths)} paths have ended")
        root, feed = fan.root, [self.marks.summary]
        seen = [path for path in fan.paths if path.block in root.reads]
        names = ", ".join(path.name for path in seen) or "nobody"
        self._tell(root, "join", f"{root.name} reads what was thought by {names}")
        if not self.config.reuse:
            root.reads, root.abreast = [], False
            feed = [*self._text(fan, seen), *feed]
        depth = max((path.depth for path in fan.paths), default=0)
        self.board.resume(root.name, feed, depth)
        fan.begun = True
        self._tell(root, "given", self.reasoner.pieces.text([self.marks.summary]))

    def _text(self, fan: Fan, seen: list[Thread]) -> list[int]:
        """The prompt and these paths as one text."""
        marks = dict(zip([path.name for path in fan.paths], self.marks.think, strict=False))
        thought = [[marks[path.name], *path.tokens[:-1]] for path in seen]
        return [*fan.prompt, *(token for tokens in thought for token in tokens)]

    def _tell(self, thread: Thread, name: str, text: str) -> None:
        self.board.emit(Mark(self.board.clock.now(), thread.name, name, text))
