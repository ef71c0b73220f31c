"""The same roles in a single stream that takes turns: read some, think of all of it, answer.

What arrives while the model writes has to wait for its turn to end, as in a chat.
"""

import numpy as np

from engine.core.events import Mark, Token
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.streams.caches import Feed, StreamCaches
from engine.reasoning.streams.words import StreamWords
from engine.tasks.running_sum import QUESTION, SumProblem, sums

DIGITS = 2  # of a sum


class TurnTaking:
    """One problem under way. Ask `feeds`, write them, then `take` what came back."""

    def __init__(
        self, config: StreamsConfig, problem: SumProblem, words: StreamWords, caches: StreamCaches,
        name: str = "",
    ) -> None:  # fmt: skip
        self.config, self.problem, self.words, self.caches = config, problem, words, caches
        self.stream = caches.open(f"all{name}")
        self.streams = [self.stream]
        self.events = self._events()  # (row, stream, letters), in the order of arrival
        self.taken = 0  # of them read so far
        self.todo: list[str] = []  # streams of the tokens still to be said in this turn
        self.feed: list[int] = []
        self.given: list[tuple[str, str]] = []  # what the next pass reads
        self.said: list[tuple[str, str]] = []
        self.wanted: list[str] = []

    def _events(self) -> list[tuple[int, str, str]]:
        rows = self.problem.rows
        read = [(row, "read", rows["read"][row - 1 : row + 1]) for row, _ in sums(rows["read"])]
        ask = [(row, "ask", QUESTION) for row, one in enumerate(rows["ask"]) if one == QUESTION]
        return sorted(read + ask, key=lambda event: (event[0], event[1] == "ask"))

    @property
    def over(self) -> bool:
        """Whether the last question is answered, or the last number thought of."""
        return not self.todo and not any(name == "ask" for _, name, _ in self.events[self.taken :])

    def due(self) -> float:
        """When the next thing it waits for arrives (s)."""
        waiting = self.events[self.taken :]
        numbers = [event for event in waiting if event[1] == "read"]
        ready = [event[0] for event in waiting if event[1] == "ask"][:1]
        ready += [event[0] for event in numbers[self.config.turn - 1 : self.config.turn]]
        return min(ready) * self.config.pace

    def feeds(self, now: float) -> list[Feed]:
        """The token said last, or a turn's worth of what has arrived."""
        if not self.todo:
            if now < self.due() - 1e-9:
                return []
            self._read(now)
        return [Feed(self.stream, self.feed, ())]

    def _read(self, now: float) -> None:
        """Take what has arrived, up to a question or a full turn."""
        numbers = 0  # what was said last, if anything, is still to be written before them
        while self.taken < len(self.events) and numbers < self.config.turn:
            row, name, letters = self.events[self.taken]
            if now < row * self.config.pace - 1e-9:
                break
            self.taken += 1
            self.given += [(name, letter) for letter in letters]
            self.feed += self.words.encode(name, letters)
            if name == "ask":
                self.todo += ["think"] * (DIGITS * numbers) + ["say"] * DIGITS
                total = dict(sums(self.problem.rows["read"]))
                self.wanted.append(f"{[t for r, t in total.items() if r <= row][-1]:02}")
                return
            numbers += 1
        self.todo += ["think"] * (DIGITS * numbers)

    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """`feed` has been written, and these are the logits after it."""
        emit = self.caches.emit
        for name, letter in self.given:
            emit(Token(now, self.stream.name, letter))
            if name == "ask":
                emit(Mark(now, self.stream.name, "ask", "what is the sum by now?"))
        self.said += self.given
        self.given = []
        name = self.todo.pop(0)
        token, logprob = self.words.choose(name, logits_V)
        letter = self.words.text([token])
        emit(Token(now, self.stream.name, letter, logprob))
        if name == "say" and (not self.said or self.said[-1][0] != "say"):
            emit(Mark(now, self.stream.name, "react", "begins to answer"))
        self.said.append((name, letter))
        self.feed = [token]

    def kept(self) -> dict[str, np.ndarray]:
        """Nothing: turns are held to no truth."""
        return {}

    def answers(self) -> list[tuple[str, str]]:
        """(wanted, said) of each question."""
        digits = "".join(letter for name, letter in self.said if name == "say")
        said = [digits[at : at + DIGITS] for at in range(0, len(digits), DIGITS)]
        return list(zip(self.wanted, said, strict=False))
