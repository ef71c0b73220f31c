"""Streams side by side: in each row of time every stream writes one token, in one forward pass.

Input streams write what has arrived, output streams what the model said after the row before; a
token sees the earlier rows of the streams it may see (arXiv 2605.12460). Shape letters: S streams.
"""

import numpy as np

from engine.core.events import Mark, Token
from engine.reasoning.multi_stream.config import StreamsConfig
from engine.reasoning.streams.caches import Feed, StreamCaches
from engine.reasoning.streams.script import who_sees
from engine.reasoning.streams.words import StreamWords
from engine.tasks.running_sum import LAG, QUESTION, SILENCE, STREAMS, SumProblem

INPUTS = ("read", "ask")


class SideBySide:
    """One problem under way. Ask `feeds`, write them, then `take` what came back, row by row."""

    def __init__(
        self, config: StreamsConfig, problem: SumProblem, words: StreamWords, caches: StreamCaches,
        name: str = "", forced: bool = False,
    ) -> None:  # fmt: skip
        """`forced`: output streams say what the problem wants, whatever the model says."""
        self.config, self.problem, self.words, self.caches = config, problem, words, caches
        self.sees_SS = who_sees(config.sees, STREAMS)
        self.streams = [caches.open(f"{stream}{name}") for stream in STREAMS]
        self.forced = forced
        self.rows = len(problem.rows["read"])
        self.said = dict.fromkeys(STREAMS, "")
        self.next = dict.fromkeys(STREAMS, SILENCE)
        self.logits: list[np.ndarray] = []  # of every row, by stream
        self._row: list[np.ndarray] = []

    @property
    def over(self) -> bool:
        """Whether all rows are written."""
        return self.streams[-1].length >= self.rows

    def due(self) -> float:
        """When the next row of input arrives (s)."""
        return self.streams[0].length * self.config.pace

    def feeds(self, now: float) -> list[Feed]:
        """The next row, once its input is there."""
        if now < self.due() - 1e-9:
            return []
        row, found = self.streams[0].length, []
        seen = row + int(self.config.same_row)
        for number, (name, stream) in enumerate(zip(STREAMS, self.streams, strict=True)):
            given = name in INPUTS or self.forced
            letter = self.problem.rows[name][row] if given else self.next[name]
            self.said[name] += letter
            others = [
                (other, seen)
                for place, other in enumerate(self.streams)
                if place != number and self.sees_SS[number, place]
            ]
            found.append(Feed(stream, self.words.encode(name, letter), others))
        return found

    def take(self, feed: Feed, logits_V: np.ndarray, now: float) -> None:
        """`feed` has been written, and these are the logits after it."""
        number = self.streams.index(feed.stream)
        name, emit = STREAMS[number], self.caches.emit
        if self.config.keep_logits:
            self._row.append(logits_V)
            if number == len(STREAMS) - 1:
                self.logits.append(np.array(self._row))
                self._row = []
        if name in INPUTS:
            letter = self.said[name][-1]
            emit(Token(now, feed.stream.name, letter))
            if letter == QUESTION:
                emit(Mark(now, feed.stream.name, "ask", "what is the sum by now?"))
            return
        token, logprob = self.words.choose(name, logits_V)
        before, self.next[name] = self.next[name], self.words.text([token])
        if not self.over:
            emit(Token(now, feed.stream.name, self.next[name], logprob))
        if name == "say" and self.next[name] != SILENCE and before == SILENCE:
            emit(Mark(now, feed.stream.name, "react", "begins to answer"))

    def kept(self) -> dict[str, np.ndarray]:
        """What every stream held, row by row, and the logits after each token."""
        rows = [self.words.encode(name, text) for name, text in self.said.items()]
        return {"tokens": np.array(rows).T, "logits": np.array(self.logits)}

    def answers(self) -> list[tuple[str, str]]:
        """(wanted, said) of each question: the two letters `LAG` rows after it."""
        wanted, said = self.problem.rows["say"], self.said["say"]
        asked = [row for row, letter in enumerate(self.problem.rows["ask"]) if letter == QUESTION]
        return [(wanted[at : at + 2], said[at : at + 2]) for at in (row + LAG for row in asked)]
