"""Thinking while reading: one problem's input and thoughts as two streams with a cache each.

The input is written as it arrives and never sees a thought; thoughts see as much of it as a policy
allows, at positions of their own (StreamingThinker). The last token of a thought is held back until
the next may begin, so that what it leads to may depend on the next clause.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from engine.core.config import Choice, knob
from engine.core.events import Level, Mark, Token
from engine.core.run import Live
from engine.reasoning.streaming_thinking.policies import ReadingPolicy, Streaming
from engine.reasoning.streams.caches import Feed
from engine.reasoning.streams.config import StreamingConfig
from engine.reasoning.streams.loop import drive
from engine.reasoning.streams.session import Session
from engine.tasks.ledger import BEGIN, LETTERS, Ledger, LedgerProblem

CLAUSE, ANSWER = ";", "."  # what ends a thought, and the last one
SPARE = 4  # tokens more than the right thoughts have before a reader is stopped


class ReadingConfig(StreamingConfig):
    """A model, problems that arrive token by token, and when it may think about them."""

    letters: ClassVar = LETTERS
    model: str = knob("ledger-700k", "A model trained to think while it reads, or a folder")
    policy: Choice[ReadingPolicy] = knob(
        make=Streaming, doc="When a thought may begin, and what it sees"
    )
    task: Ledger = knob(Ledger(entries=5), "What is read")

    apart: int = knob(
        64, "Position of the first thought, beyond all that can be read", low=1, high=4096,
        unit="tokens", group="positions",
    )  # fmt: skip
    shifting: bool = knob(
        False, "Put thoughts right behind what has arrived, so that arrivals shift them",
        group="positions",
    )  # fmt: skip

    @property
    def each(self) -> int:
        letters = 5 * self.task.entries + 8, 10 * self.task.entries + 16  # read, thought: at most
        return sum(-(-count // self.page_size) for count in letters)


@dataclass(eq=False)
class Reader(Session[ReadingConfig, LedgerProblem]):
    """One problem under way. `forced`: thoughts to be said instead of its own, BEGIN left out."""

    forced: Sequence[int] = ()

    def __post_init__(self) -> None:
        config, problem, words = self.config, self.problem, self.words
        self.input = words.encode("read", problem.prompt)
        self.ends = np.cumsum([len(clause) for clause in problem.clauses]).tolist()
        apart = 0 if config.shifting else config.apart
        self.read = self.caches.open(f"read{self.name}")
        self.think = self.caches.open(f"think{self.name}", apart)
        self.streams = self.read, self.think
        self.said = words.encode("think", BEGIN)
        self.upto: list[int] = []  # tokens of the input that each thought token saw
        self.logits: list[np.ndarray] = []  # after each of them
        self.unit, self.sees = 0, -1  # thought under way, and what it sees; -1: not begun
        self.ended = False

    @property
    def over(self) -> bool:
        """Whether its answer is there."""
        return self.ended

    def arrived(self, now: float) -> int:
        """Tokens of the input that are there."""
        if not self.config.pace:
            return len(self.input)
        # A token due at this very moment must not be missed by rounding.
        return min(len(self.input), int(now / self.config.pace + 1e-9) + 1)

    def due(self) -> float:
        """When the next token of the input arrives (s)."""
        return self.read.length * self.config.pace

    def feeds(self, now: float) -> list[Feed]:
        """What can be written now: what has arrived, and the latest token if it may see enough."""
        there = self.arrived(now)
        fresh = self.input[self.read.length : there]
        found = [Feed(self.read, fresh, ())] if fresh else []
        if self.sees < 0:
            allowed = self.config.policy.sees(self.unit, self.ends, there)
            if allowed is None:
                return found
            self._begin(now, allowed)
        if self.config.shifting:
            self.think.begin = there
        return [*found, Feed(self.think, [self.said[-1]], [(self.read, self.sees)])]

    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """`feed` has been written, and these are the logits after it."""
        emit = self.caches.emit
        if feed.stream is self.read:
            first = self.read.length - len(feed.tokens)
            for place, token in enumerate(feed.tokens, first):
                emit(Token(now, self.read.name, self.words.text([token])))
                if place + 1 in self.ends:
                    emit(Mark(now, self.read.name, "arrive", self._clause(place + 1)))
            return
        self.upto.append(self.sees)
        if self.config.keep_logits:
            self.logits.append(logits_V)
        token, logprob = self.words.choose("think", logits_V)
        if self.forced:
            token = self.forced[len(self.said) - 1]
        self.said.append(token)
        letter = self.words.text([token])
        emit(Token(now, self.think.name, letter, logprob))
        if letter == CLAUSE:
            self.unit, self.sees = self.unit + 1, -1
        longest = len("".join(self.problem.thoughts)) + SPARE
        if letter == ANSWER or len(self.said) > longest or len(self.said) - 1 == len(self.forced):
            self._end(now)

    def kept(self) -> dict[str, np.ndarray]:
        """What was read and said, what each thought saw, and its logits."""
        return {
            "read": np.array(self.input),
            "think": np.array(self.said[:-1]),
            "upto": np.array(self.upto),
            "logits": np.array(self.logits),
        }

    @property
    def text(self) -> str:
        """All thoughts so far."""
        return self.words.text(self.said[1:])

    def _begin(self, now: float, allowed: int) -> None:
        """Thought `unit` begins and sees the first `allowed` tokens of the input."""
        emit, before = self.caches.emit, 0
        self.sees = allowed
        emit(Mark(now, self.think.name, "join", self.read.name))
        for end in self.ends:
            if end > allowed:
                break
            emit(Level(now, self.think.name, f"sees/{self._block(end)}", float(before)))
            before = end

    def _end(self, now: float) -> None:
        emit, verdict = self.caches.emit, self.problem.check(self.text)
        self.ended = True
        emit(Mark(now, self.think.name, "answer", verdict.answer or "none"))
        emit(Mark(now, self.think.name, "verdict", "right" if verdict.right else "wrong"))

    def _clause(self, end: int) -> str:
        return self.problem.clauses[self.ends.index(end)]

    def _block(self, end: int) -> str:
        """The clause as a block of the input, by its label."""
        return f"{self.read.name}:{self._clause(end)[:1].replace('?', 'question')}"


def whole_s(readers: Sequence[Reader]) -> dict[str, list[float]]:
    """When each input is all there, for the log's header."""
    return {"whole_s": [(len(reader.input) - 1) * reader.config.pace for reader in readers]}


def run(config: ReadingConfig, live: Live) -> None:
    """Read and think until every problem has its answer; out come tokens of both streams, arrivals,
    answers and waits."""
    drive(config, live, Reader, whole_s, tell=False)
